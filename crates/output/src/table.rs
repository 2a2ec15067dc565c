//! `table`: rows in columns, with a heading.
//!
//! Dicts on the way to the rows become headings like those of `nested`; a list of dicts, of lists of
//! texts, or of texts is a table. Cells wrap at spaces. Quirks kept: a row whose cells wrap to
//! different heights is cut to the lowest one, all rows are cut to the shortest, and rows of mixed
//! kinds show nothing.

use halite_value::{Dict, Value};

use crate::{Color, Style, Table, Unfit, python};

pub(crate) fn render(ret: &Value, style: &Style, out: &mut String) -> Result<(), Unfit> {
    let table = &style.table;
    let indent = if style.nested_indent > 0 { style.nested_indent } else { table.nested_indent };
    let mut writer = Writer { style, table, lines: Vec::new() };
    if let (Some(title), Some(_)) = (&table.title, &table.rows_key) {
        // The title stands where the colour should, and the colour where the title should.
        let (white, end) = (style.colors.get(Color::White), style.colors.end());
        writer.lines.push(format!("{}{title}{white}{end}\n", " ".repeat(indent)));
    }
    writer.value(&python::decoded(ret)?, indent)?;
    out.push_str(&writer.lines.join("\n"));
    Ok(())
}

struct Writer<'a> {
    style: &'a Style,
    table: &'a Table,
    lines: Vec<String>,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, color: Color, text: &str, suffix: &str) {
        let colors = &self.style.colors;
        let line = [&" ".repeat(indent), colors.get(color), text, colors.end(), suffix].concat();
        self.lines.push(line);
    }

    fn value(&mut self, value: &Value, indent: usize) -> Result<(), Unfit> {
        match (value, &self.table.rows_key) {
            (Value::List(rows), None) => self.rows(&rows.to_vec(), None, indent),
            (Value::Dict(dict), None) => {
                for (key, value) in python::sorted_entries(dict).ok_or(Unfit)? {
                    self.line(indent, Color::DarkGray, &key.to_str(), ":");
                    self.line(indent, Color::DarkGray, "----------", "");
                    self.under_key(&value, dict, indent)?;
                }
                Ok(())
            }
            (Value::Dict(dict), Some(rows_key)) => {
                if let Some(value) = dict.get(rows_key.as_str()) {
                    // The keys are sorted here too, so they must have an order.
                    python::sorted_entries(dict).ok_or(Unfit)?;
                    return self.under_key(&value, dict, indent);
                }
                for (_, value) in python::sorted_entries(dict).ok_or(Unfit)? {
                    self.value(&value, indent)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn under_key(&mut self, value: &Value, beside: &Dict, indent: usize) -> Result<(), Unfit> {
        let Value::List(rows) = value else { return self.value(value, indent + 4) };
        let labels = self.table.labels_key.as_ref().and_then(|key| beside.get(key.as_str()));
        self.rows(&rows.to_vec(), labels, indent)
    }

    fn rows(&mut self, rows: &[Value], labels: Option<Value>, indent: usize) -> Result<(), Unfit> {
        let Some(first) = rows.first() else { return Ok(()) };
        if rows.iter().any(|row| row.type_name() != first.type_name()) {
            return Ok(());
        }
        let mut cells = Vec::with_capacity(rows.len() + 1);
        let labels = match labels.filter(Value::truthy) {
            Some(labels) => Some(label_cells(&labels)?),
            None => match first {
                Value::Dict(dict) => Some(labels_from_keys(dict)?).filter(|row| !row.is_empty()),
                _ => None,
            },
        };
        let header = self.table.has_header && labels.is_some();
        cells.extend(labels);
        for row in rows {
            cells.push(row_cells(row)?);
        }
        self.cells(&cells, indent + 4, header)
    }

    fn cells(&mut self, rows: &[Vec<String>], indent: usize, header: bool) -> Result<(), Unfit> {
        let blocks: Vec<Vec<Vec<String>>> =
            rows.iter().map(|row| self.wrapped(row)).collect::<Result<_, _>>()?;
        let columns = blocks.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let width_of = |column: usize| {
            let cells = blocks.iter().flatten().filter_map(|row| row.get(column));
            cells.map(|cell| python::len(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        let table = self.table;
        let length = python::len(&table.prefix)
            + python::len(&table.suffix)
            + widths.iter().sum::<usize>()
            + python::len(&table.delim) * columns.saturating_sub(1);
        let rule = table.row_delimiter.repeat(length);
        if table.separate_rows {
            self.line(indent, Color::LightGray, &rule, "");
        }
        let mut rule_due = header;
        for block in &blocks {
            for row in block {
                let cells =
                    row.iter().zip(&widths).map(|(cell, width)| self.justified(cell, *width));
                let cells = cells.collect::<Result<Vec<_>, _>>()?.join(&table.delim);
                self.line(
                    indent,
                    Color::White,
                    &format!("{}{cells}{}", table.prefix, table.suffix),
                    "",
                );
            }
            if table.separate_rows || rule_due {
                self.line(indent, Color::LightGray, &rule, "");
                rule_due = false;
            }
        }
        Ok(())
    }

    fn justified(&self, cell: &str, width: usize) -> Result<String, Unfit> {
        let spare = " ".repeat(width.saturating_sub(python::len(cell)));
        match self.table.justify.to_lowercase().as_str() {
            "center" => Ok(python::center(cell, width)),
            "left" => Ok(format!("{cell}{spare}")),
            "right" => Ok(format!("{spare}{cell}")),
            _ => Err(Unfit),
        }
    }

    /// Returns the lines of one row, each a list of cells.
    fn wrapped(&self, row: &[String]) -> Result<Vec<Vec<String>>, Unfit> {
        let cells: Vec<Vec<String>> = row.iter().map(|cell| self.wrap(cell)).collect();
        let height = cells.iter().map(Vec::len).min().ok_or(Unfit)?;
        let line = |at: usize| cells.iter().filter_map(|cell| cell.get(at).cloned()).collect();
        Ok((0..height).map(line).collect())
    }

    /// Breaks at a space as soon as the next word would reach the width.
    fn wrap(&self, text: &str) -> Vec<String> {
        let mut out = String::new();
        for (index, word) in text.split(' ').enumerate() {
            if index > 0 {
                let line = python::len(out.rsplit('\n').next().unwrap_or(""));
                let word = python::len(word.split('\n').next().unwrap_or(""));
                out.push(if line + word >= self.table.width { '\n' } else { ' ' });
            }
            out.push_str(word);
        }
        out.split('\n').map(str::to_owned).collect()
    }
}

fn row_cells(row: &Value) -> Result<Vec<String>, Unfit> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(Unfit);
    match row {
        Value::Dict(dict) => {
            let entries = python::sorted_entries(dict).ok_or(Unfit)?;
            Ok(entries.iter().map(|(_, value)| value.to_str().into()).collect())
        }
        Value::List(cells) => cells.read().iter().map(text).collect(),
        Value::Str(cell) => Ok(vec![cell.to_string()]),
        _ => Err(Unfit),
    }
}

/// Headings may come as a list, as a dict (in the order of its keys) or as a text, letter by letter.
fn label_cells(labels: &Value) -> Result<Vec<String>, Unfit> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(Unfit);
    match labels {
        Value::Dict(dict) => {
            let entries = python::sorted_entries(dict).ok_or(Unfit)?;
            entries.iter().map(|(_, value)| text(value)).collect()
        }
        Value::List(labels) => labels.read().iter().map(text).collect(),
        Value::Str(labels) => Ok(labels.chars().map(String::from).collect()),
        _ => Err(Unfit),
    }
}

fn labels_from_keys(dict: &Dict) -> Result<Vec<String>, Unfit> {
    let entries = python::sorted_entries(dict).ok_or(Unfit)?;
    Ok(entries.iter().map(|(key, _)| title_case(&key.to_str().replace('_', " "))).collect())
}

/// Each run of letters starts with a capital and goes on in small ones.
fn title_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    out
}
