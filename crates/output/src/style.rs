//! How to write: everything an outputter may ask about, as plain data.
//!
//! The names are those of Salt's options; the programs fill them in from configuration and command
//! line, or all at once with [`Style::from_opts`]. Nothing here reads a file: a colour theme comes
//! in as the dict that its YAML file holds.

use halite_value::{Dict, Value};
use smol_str::{SmolStr, format_smolstr};

/// What the user wants the output to look like. The default is that of Salt's configuration.
#[derive(Clone, Debug)]
pub struct Style {
    pub colors: Colors,
    /// Show ESC in data as `?`, so that it cannot drive the terminal. Where genuine Salt does not
    /// (comments, keys, names), neither do we.
    pub strip_colors: bool,
    /// `--out-indent`, `output_indent`.
    pub output_indent: Indent,
    /// Columns before every line of nested output.
    pub nested_indent: usize,
    /// The return code of the job; other than zero, `nested` turns its frame red.
    pub retcode: i64,
    /// Lists of keys stand under a heading and are indented.
    pub multi_key: bool,
    /// `zeromq`, `tcp` and `ws` name lists of keys otherwise than anything else does.
    pub transport: SmolStr,
    pub state_verbose: bool,
    /// `full`, `terse`, `mixed`, `changes` or `filter`, each also with `_id`.
    pub state_output: SmolStr,
    pub state_output_diff: bool,
    pub state_output_profile: bool,
    pub state_output_pct: bool,
    pub state_compress_ids: bool,
    pub state_tabular: Tabular,
    /// Results that `filter` leaves out: a list, or text with commas.
    pub state_output_exclude: Value,
    /// Results that `filter` shows on one line.
    pub state_output_terse: Value,
    /// The arguments of the job: `exclude=` and `terse=` among them go before the two above.
    pub arg: Vec<Value>,
    pub table: Table,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            state_verbose: true,
            state_output_profile: true,
            ..Self::from_opts(&Dict::new(), &Dict::new())
        }
    }
}

impl Style {
    /// Returns the style that Salt options describe, with the answers genuine outputters take for
    /// options that are not there at all (`state_verbose` is then off: only the configuration's
    /// defaults turn it on). `theme` holds the colours of `color_theme`, if any.
    pub fn from_opts(opts: &Dict, theme: &Dict) -> Self {
        let get = |name: &str| opts.get(name).unwrap_or_default();
        let on = |name: &str| get(name).truthy();
        let text = |name: &str, default: &str| match opts.get(name) {
            Some(value) => value.to_str(),
            None => default.into(),
        };
        Self {
            colors: match get("color") {
                Value::Str(name) if !name.is_empty() => Colors::new(theme).all_as(&name),
                color if color.truthy() => Colors::new(theme),
                _ => Colors::off(),
            },
            strip_colors: opts.get("strip_colors").is_none_or(|value| value.truthy()),
            output_indent: Indent::from_option(opts.get("output_indent")),
            nested_indent: usize::try_from(get("nested_indent").to_int().unwrap_or(0)).unwrap_or(0),
            retcode: 0,
            multi_key: on("__multi_key"),
            transport: text("transport", "zeromq"),
            state_verbose: on("state_verbose"),
            state_output: text("state_output", "full"),
            state_output_diff: on("state_output_diff"),
            state_output_profile: on("state_output_profile"),
            state_output_pct: on("state_output_pct"),
            state_compress_ids: on("state_compress_ids"),
            state_tabular: match get("state_tabular") {
                Value::Bool(true) => Tabular::Yes,
                Value::Str(text) => Tabular::Format(text),
                _ => Tabular::No,
            },
            state_output_exclude: opts.get("state_output_exclude").unwrap_or_else(no_items),
            state_output_terse: opts.get("state_output_terse").unwrap_or_else(no_items),
            arg: get("arg").items_of_sequence().unwrap_or_default(),
            table: Table::from_opts(opts),
        }
    }
}

fn no_items() -> Value {
    Value::list::<Value>([])
}

/// The indentation of `json`, `yaml` and `pprint`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Indent {
    /// Not asked for: each outputter has its own.
    #[default]
    Unset,
    /// Set to nothing: JSON goes on one line.
    Null,
    /// JSON: four spaces and sorted keys.
    Pretty,
    /// Spaces; negative is one line.
    Spaces(i64),
    /// JSON: this text per level.
    Text(SmolStr),
}

impl Indent {
    fn from_option(option: Option<Value>) -> Self {
        match option {
            None => Self::Unset,
            Some(Value::Str(text)) if text == "pretty" => Self::Pretty,
            Some(Value::Str(text)) => Self::Text(text),
            Some(value) => value.to_int().map_or(Self::Null, Self::Spaces),
        }
    }
}

/// The columns of terse state output.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Tabular {
    #[default]
    No,
    Yes,
    /// A format in Python's manner: `{1}` is the name, `{2}.{3}` the function, `{4}` the result …
    Format(SmolStr),
}

/// The settings of the `table` outputter, `out.table.*`.
#[derive(Clone, Debug)]
pub struct Table {
    pub nested_indent: usize,
    pub has_header: bool,
    pub row_delimiter: SmolStr,
    pub delim: SmolStr,
    /// `center`, `left` or `right`.
    pub justify: SmolStr,
    pub separate_rows: bool,
    pub prefix: SmolStr,
    pub suffix: SmolStr,
    pub width: usize,
    /// Show only the rows under this key, wherever it is.
    pub rows_key: Option<SmolStr>,
    /// The key beside it that holds the headings.
    pub labels_key: Option<SmolStr>,
    /// A line above; shown only together with `rows_key`.
    pub title: Option<SmolStr>,
}

impl Default for Table {
    fn default() -> Self {
        Self::from_opts(&Dict::new())
    }
}

impl Table {
    fn from_opts(opts: &Dict) -> Self {
        let get = |name: &str| {
            let value = opts.get(format!("out.table.{name}").as_str());
            value.filter(|value| !value.is_null())
        };
        let text = |name: &str, default: &str| get(name).map_or(default.into(), |v| v.to_str());
        let on = |name: &str| get(name).is_none_or(|value| value.truthy());
        let key = |name: &str| get(name).filter(Value::truthy).map(|value| value.to_str());
        let number = |name: &str, default: usize| {
            let value = get(name).and_then(|value| value.to_int());
            value.map_or(default, |int| usize::try_from(int).unwrap_or(0))
        };
        Self {
            nested_indent: number("nested_indent", 0),
            has_header: on("has_header"),
            row_delimiter: text("row_delimiter", "-"),
            delim: text("delim", " | "),
            justify: text("justify", "center"),
            separate_rows: on("separate_rows"),
            prefix: text("prefix", "| "),
            suffix: text("suffix", " |"),
            width: number("width", 50),
            rows_key: key("rows_key"),
            labels_key: key("labels_key"),
            title: key("title"),
        }
    }
}

macro_rules! colors {
    ($($variant:ident $name:literal $code:literal,)*) => {
        /// A place in the palette, by the name that themes use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Color { $($variant,)* }

        const COLORS: [(&str, &str); [$($name),*].len()] = [$(($name, $code)),*];
    };
}

colors! {
    Black "BLACK" "0;30",
    DarkGray "DARK_GRAY" "0;1;30",
    Red "RED" "0;31",
    LightRed "LIGHT_RED" "0;1;31",
    Green "GREEN" "0;32",
    LightGreen "LIGHT_GREEN" "0;1;32",
    Yellow "YELLOW" "0;33",
    LightYellow "LIGHT_YELLOW" "0;1;33",
    Blue "BLUE" "0;34",
    LightBlue "LIGHT_BLUE" "0;1;34",
    Magenta "MAGENTA" "0;35",
    LightMagenta "LIGHT_MAGENTA" "0;1;35",
    Cyan "CYAN" "0;36",
    LightCyan "LIGHT_CYAN" "0;1;36",
    LightGray "LIGHT_GRAY" "0;37",
    White "WHITE" "0;1;37",
    DefaultColor "DEFAULT_COLOR" "0;39",
    Endc "ENDC" "0;0",
}

/// The terminal sequences of all colours, or none.
#[derive(Clone, Debug, Default)]
pub struct Colors(Option<Box<[SmolStr; COLORS.len()]>>);

impl Colors {
    /// Returns no colours at all.
    pub fn off() -> Self {
        Self(None)
    }

    /// Returns Salt's colours, changed by a theme: names as in `LIGHT_RED`, values as in `1;31`.
    pub fn new(theme: &Dict) -> Self {
        let sequence = |(name, code): (&str, &str)| match theme.get(name) {
            Some(own) => format_smolstr!("\x1b[{own}m"),
            None => format_smolstr!("\x1b[{code}m"),
        };
        Self(Some(Box::new(COLORS.map(sequence))))
    }

    /// Returns the palette with every colour replaced by the one of this name; an unknown name
    /// changes nothing.
    pub fn all_as(mut self, name: &str) -> Self {
        let index = COLORS.iter().position(|(own, _)| *own == name);
        if let (Some(palette), Some(index)) = (&mut self.0, index) {
            let one = palette[index].clone();
            let end = palette[Color::Endc as usize].clone();
            palette.fill(one);
            palette[Color::Endc as usize] = end;
        }
        self
    }

    /// Returns the sequence that turns a colour on; empty without colours.
    pub fn get(&self, color: Color) -> &str {
        self.0.as_ref().map_or("", |palette| &palette[color as usize])
    }

    /// Returns the sequence that ends any colour.
    pub fn end(&self) -> &str {
        self.get(Color::Endc)
    }
}

#[cfg(test)]
mod tests {
    use halite_value::dict;

    use super::*;

    fn opts(value: &Value) -> Style {
        Style::from_opts(value.as_dict().expect("dict"), &Dict::new())
    }

    #[test]
    fn palettes() {
        let colors = Colors::new(&Dict::new());
        assert_eq!(colors.get(Color::LightYellow), "\x1b[0;1;33m");
        assert_eq!(colors.end(), "\x1b[0;0m");
        assert_eq!(Colors::off().end(), "");
        let theme = dict! { "RED" => "1;91", "GREEN" => 92 };
        let themed = Colors::new(theme.as_dict().expect("dict"));
        assert_eq!(themed.get(Color::Red), "\x1b[1;91m");
        assert_eq!(themed.get(Color::Green), "\x1b[92m");
        let red = themed.all_as("RED");
        assert_eq!((red.get(Color::Cyan), red.end()), ("\x1b[1;91m", "\x1b[0;0m"));
    }

    #[test]
    fn options_become_a_style() {
        assert!(Style::default().state_verbose);
        assert!(!opts(&dict! {}).state_verbose);
        assert_eq!(opts(&dict! { "output_indent" => () }).output_indent, Indent::Null);
        assert_eq!(opts(&dict! { "output_indent" => -1 }).output_indent, Indent::Spaces(-1));
        assert_eq!(opts(&dict! { "state_tabular" => true }).state_tabular, Tabular::Yes);
        assert_eq!(opts(&dict! { "out.table.delim" => " # " }).table.delim, " # ");
        assert_eq!(opts(&dict! { "color" => true }).colors.get(Color::Red), "\x1b[0;31m");
    }
}
