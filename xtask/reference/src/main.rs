//! Writes the reference pages, one per module, from the declarations: `halite-reference FOLDER`.
//!
//! It is a program apart from `xtask`, because it links every function there is, while `xtask gen`
//! must work when they do not compile. The pages are Markdown; doc comments are copied as they are.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people at a terminal"
)]

use std::{fmt::Write as _, fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use halite_spec::{Module, Param, StateModule};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: halite-reference FOLDER");
        return ExitCode::from(64);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("halite-reference: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> Result<()> {
    let mut index = String::from("# Reference\n\n## Execution modules\n\n");
    for module in halite_modules::ALL {
        let page = format!("modules/{}.md", module.name);
        save(&folder.join(&page), &module_page(module))?;
        entry(&mut index, module.name, &page, module.doc);
    }
    index.push_str("\n## States\n\n");
    for module in halite_states::ALL {
        let page = format!("states/{}.md", module.name);
        save(&folder.join(&page), &state_page(module))?;
        entry(&mut index, module.name, &page, module.doc);
    }
    save(&folder.join("README.md"), &index)?;
    let functions: usize = halite_modules::ALL.iter().map(|module| module.functions.len()).sum();
    let states: usize = halite_states::ALL.iter().map(|module| module.states.len()).sum();
    println!("{functions} functions, {states} states: {}", folder.join("README.md").display());
    Ok(())
}

fn entry(index: &mut String, name: &str, page: &str, doc: &str) {
    line(index, &format!("- [{name}]({page}): {}", doc.trim().lines().next().unwrap_or_default()));
}

fn module_page(module: &Module) -> String {
    let mut page = format!("# {}\n\n{}\n", module.name, lines(module.doc));
    for function in module.functions {
        let name = format!("{}.{}", module.name, function.name);
        section(&mut page, &name, function.doc, function.params);
    }
    page
}

fn state_page(module: &StateModule) -> String {
    let mut page = format!("# {}\n\n{}\n", module.name, lines(module.doc));
    for state in module.states {
        let name = format!("{}.{}", module.name, state.name);
        section(&mut page, &name, (state.doc)(), (state.params)());
    }
    page
}

fn section(page: &mut String, name: &str, doc: &str, params: &[Param]) {
    line(page, &format!("\n## {name}\n\n{}", lines(doc)));
    if params.is_empty() {
        return;
    }
    page.push_str("\n| Argument | Accepts | Default | |\n| --- | --- | --- | --- |\n");
    for param in params {
        let default = match param.default {
            Some(default) => format!("`{}`", default().repr()),
            None if param.rest => "none".to_owned(),
            None => "**required**".to_owned(),
        };
        let doc = param.doc.replace('\n', " ").replace('|', "\\|");
        line(page, &format!("| `{}` | {} | {default} | {doc} |", param.name, param.kind));
    }
}

/// Doc comments of `module!` keep the blank before each line.
fn lines(doc: &str) -> String {
    doc.trim()
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn line(page: &mut String, text: &str) {
    writeln!(page, "{text}").expect("a String takes all");
}

fn save(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().expect("pages lie in folders");
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lists_functions_and_arguments() {
        let module = halite_modules::ALL.iter().find(|module| module.name == "test");
        let page = module_page(module.expect("every release has `test`"));
        assert!(page.starts_with("# test\n\n"), "{page}");
        assert!(page.contains("\n## test.ping\n"), "{page}");
        assert!(page.contains("**required**"), "{page}");
    }

    #[test]
    fn everything_has_a_sentence() {
        for module in halite_modules::ALL {
            assert!(!module.doc.trim().is_empty(), "{}", module.name);
            for function in module.functions {
                assert!(!function.doc.is_empty(), "{}.{}", module.name, function.name);
            }
        }
        for module in halite_states::ALL {
            assert!(!module.doc.trim().is_empty(), "{}", module.name);
            for state in module.states {
                assert!(!(state.doc)().is_empty(), "{}.{}", module.name, state.name);
            }
        }
    }
}
