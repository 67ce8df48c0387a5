//! RE2's regex syntax, written in the syntax of the `regex` crate.
//!
//! Where they differ: in RE2 `\d \w \s \b` are ASCII; `{` that begins no repetition is a literal; inside a class `[`, `&&`,
//! `--` and `~~` mean themselves; `\<` is `<`; there are octal escapes and `\Q…\E`. Time is linear in the pattern.

/// The names that may stand in `[:name:]`.
const POSIX_NAMES: &[&str] =
    &["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word", "xdigit"];

/// Writes `pattern` in the other syntax.
///
/// What is wrong in both syntaxes may pass: the regex is parsed afterwards.
///
/// # Errors
/// What is wrong, as a clause.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' if repetition_len(self.rest).is_none() => {
                    self.out.push_str("\\{");
                    self.skip(1);
                }
                '{' => self.copy(repetition_len(self.rest).unwrap_or(1)),
                '(' => self.group()?,
                _ => self.copy(c.len_utf8()),
            }
        }
        Ok(())
    }

    fn skip(&mut self, len: usize) {
        self.rest = &self.rest[len..];
    }

    fn copy(&mut self, len: usize) {
        self.out.push_str(&self.rest[..len]);
        self.skip(len);
    }

    /// An opening parenthesis, and the flags after it: RE2 knows only `i m s U`.
    fn group(&mut self) -> Result<(), String> {
        self.copy(1);
        let Some(flags) = self.rest.strip_prefix('?') else { return Ok(()) };
        let len = flags.bytes().take_while(|b| b.is_ascii_alphabetic() || *b == b'-').count();
        if !flags.starts_with('P')
            && let Some(flag) = flags[..len].chars().find(|c| !"imsU-".contains(*c))
        {
            return Err(format!("unknown flag {flag:?} in (?…)"));
        }
        self.copy(1 + len);
        Ok(())
    }

    /// A backslash outside a class.
    fn escape(&mut self) -> Result<(), String> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let len = quoted.find("\\E").unwrap_or(quoted.len());
            regex_syntax::escape_into(&quoted[..len], &mut self.out);
            self.rest = quoted[len..].strip_prefix("\\E").unwrap_or("");
            return Ok(());
        }
        match self.rest[1..].chars().next() {
            Some(boundary @ ('b' | 'B')) => {
                self.out.push_str(if boundary == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                self.skip(2);
            }
            Some('A' | 'z') => self.copy(2),
            _ => {
                if !self.many_characters()? {
                    let c = self.one_character()?;
                    self.push_character(c);
                }
            }
        }
        Ok(())
    }

    /// `\d`, `\pL` and their like: an escape that stands for a set, in or outside a class. False when it is none.
    fn many_characters(&mut self) -> Result<bool, String> {
        let set = match self.rest.as_bytes() {
            [b'\\', b'd', ..] => "[0-9]",
            [b'\\', b'D', ..] => "[^0-9]",
            [b'\\', b'w', ..] => "[0-9A-Za-z_]",
            [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
            [b'\\', b's', ..] => r"[\t\n\x0C\r ]",
            [b'\\', b'S', ..] => r"[^\t\n\x0C\r ]",
            [b'\\', b'p' | b'P', b'{', ..] => {
                let len = self.rest.find('}').ok_or("\\p{ has no closing brace")?;
                self.copy(len + 1);
                return Ok(true);
            }
            [b'\\', b'p' | b'P', ..] => {
                let letter = self.rest[2..].chars().next().ok_or("\\p needs a class name")?;
                self.copy(2 + letter.len_utf8());
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.out.push_str(set);
        self.skip(2);
        Ok(true)
    }

    /// One character, perhaps written as an escape, in or outside a class.
    fn one_character(&mut self) -> Result<char, String> {
        let mut chars = self.rest.chars();
        let first = chars.next().ok_or("unclosed class")?;
        if first != '\\' {
            self.skip(first.len_utf8());
            return Ok(first);
        }
        let letter = chars.next().ok_or("it ends with a backslash")?;
        self.skip(1 + letter.len_utf8());
        match letter {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' => self.hex(),
            '0'..='7' => self.octal(letter),
            _ if letter.is_ascii_punctuation() || letter == ' ' => Ok(letter),
            _ => Err(format!("unknown escape \\{letter}")),
        }
    }

    fn hex(&mut self) -> Result<char, String> {
        let (digits, len) = match self.rest.strip_prefix('{') {
            Some(inner) => inner.find('}').map(|len| (&inner[..len], len + 2)),
            None => self.rest.get(..2).map(|digits| (digits, 2)),
        }
        .ok_or("\\x needs two hex digits, or more in braces")?;
        let code = Some(digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|d| u32::from_str_radix(d, 16).ok());
        let c = code.and_then(char::from_u32).ok_or("\\x names no character")?;
        self.skip(len);
        Ok(c)
    }

    /// `\0`, `\07`, `\012`, `\123`; one digit other than 0 alone would be a backreference.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let more = self.rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
        if first != '0' && more == 0 {
            return Err("backreferences are not supported".to_string());
        }
        let code = self.rest[..more].bytes().fold(u32::from(first) - 48, |code, b| code * 8 + u32::from(b - b'0'));
        self.skip(more);
        char::from_u32(code).ok_or_else(|| "the octal escape names no character".to_string())
    }

    /// Writes `c` so that it means itself everywhere.
    fn push_character(&mut self, c: char) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            self.out.push_str(&format!("\\x{:02X}", u32::from(c)));
        } else {
            self.out.push(c);
        }
    }

    /// A class `[…]`.
    fn class(&mut self) -> Result<(), String> {
        self.copy(if self.rest.starts_with("[^") { 2 } else { 1 });
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.posix()? || self.many_characters()? {
                continue;
            }
            let low = self.one_character()?;
            self.push_character(low);
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.copy(1);
                let high = self.one_character()?;
                self.push_character(high);
            }
        }
        self.copy(1);
        Ok(())
    }

    /// `[:alpha:]` and its like inside a class. False when there is none.
    fn posix(&mut self) -> Result<bool, String> {
        let Some(inner) = self.rest.strip_prefix("[:") else { return Ok(false) };
        // Names are short: looking no further keeps the time linear.
        let Some(len) = inner.as_bytes().iter().take(16).position(|&b| b == b':').filter(|&len| inner[len..].starts_with(":]")) else {
            return Ok(false);
        };
        let name = &inner[..len];
        if !POSIX_NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("unknown class [:{name}:]"));
        }
        self.copy(len + 4);
        Ok(true)
    }
}

/// The length of the repetition `{n}`, `{n,}` or `{n,m}` that `rest` begins with.
fn repetition_len(rest: &str) -> Option<usize> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let inner = rest.strip_prefix('{')?;
    let mut len = digits(inner);
    if len == 0 {
        return None;
    }
    if inner[len..].starts_with(',') {
        len += 1;
        len += digits(&inner[len..]);
    }
    inner[len..].starts_with('}').then_some(len + 2)
}
