//! What a terminal gets and a file does not: colour and progress.

use std::io::IsTerminal;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the environment says about colour, as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The output is a terminal.
    pub terminal: bool,
    /// `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// `CLICOLOR_FORCE` is set and not `0`.
    pub force: bool,
    /// `TERM` is `dumb`.
    pub dumb: bool,
}

impl Surroundings {
    /// What surrounds the standard output of this process.
    #[must_use]
    pub fn of_stdout() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Surroundings {
            terminal: std::io::stdout().is_terminal(),
            no_color: set("NO_COLOR").is_some(),
            force: set("CLICOLOR_FORCE").is_some_and(|value| value != "0"),
            dumb: set("TERM").is_some_and(|value| value == "dumb"),
        }
    }
}

impl Color {
    /// Whether to use colour.
    #[must_use]
    pub const fn decide(self, around: Surroundings) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if around.no_color => false,
            Color::Auto => around.force || (around.terminal && !around.dumb),
        }
    }
}

/// The styles of a report; plain ones print nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Palette {
    /// As it should be.
    pub good: Style,
    /// As it should not be.
    pub bad: Style,
    /// Neither.
    pub unsure: Style,
    /// What stands out.
    pub strong: Style,
    /// What stands back.
    pub faint: Style,
}

impl Palette {
    /// With colour or without.
    #[must_use]
    pub const fn new(color: bool) -> Self {
        let plain = Style::new();
        if !color {
            return Palette { good: plain, bad: plain, unsure: plain, strong: plain, faint: plain };
        }
        Palette {
            good: AnsiColor::Green.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            unsure: AnsiColor::Yellow.on_default(),
            strong: plain.bold(),
            faint: plain.dimmed(),
        }
    }
}

/// Progress on the standard error, if that is a terminal; else nothing at all.
#[derive(Clone, Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Of `total` units of work.
    #[must_use]
    pub fn of(total: u64, wanted: bool) -> Self {
        let bar = Self::bar(Some(total), wanted);
        bar.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed} left {eta}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress(bar)
    }

    /// Of work without a known end.
    #[must_use]
    pub fn open_ended(wanted: bool) -> Self {
        let bar = Self::bar(None, wanted);
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Progress(bar)
    }

    fn bar(total: Option<u64>, wanted: bool) -> ProgressBar {
        let shown = wanted && std::io::stderr().is_terminal();
        let target = if shown {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        if shown {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        bar
    }

    /// One more unit is done; `what` is under way.
    pub fn step(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.inc(1);
    }

    /// Says how far the work is.
    pub fn say(&self, what: String) {
        self.0.set_message(what);
    }

    /// Runs `print` with the line of progress out of its way.
    pub fn aside<R>(&self, print: impl FnOnce() -> R) -> R {
        self.0.suspend(print)
    }

    /// Leaves no trace on the terminal.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_unless_somebody_says_otherwise() {
        let nothing = Surroundings::default();
        let terminal = Surroundings { terminal: true, ..nothing };
        for (choice, around, expected) in [
            (Color::Auto, nothing, false),
            (Color::Auto, terminal, true),
            (Color::Auto, Surroundings { dumb: true, ..terminal }, false),
            (Color::Auto, Surroundings { no_color: true, ..terminal }, false),
            (Color::Auto, Surroundings { force: true, ..nothing }, true),
            (Color::Auto, Surroundings { force: true, no_color: true, ..terminal }, false),
            (Color::Always, Surroundings { no_color: true, ..nothing }, true),
            (Color::Never, Surroundings { force: true, ..terminal }, false),
        ] {
            assert_eq!(choice.decide(around), expected, "{choice:?} {around:?}");
        }
        assert_eq!(Palette::new(false), Palette::default());
        assert_eq!(format!("{}", Palette::new(false).bad), "");
    }
}
