//! Types from a tree of places: a serde deserializer whose errors know where they are.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::tree::{Member, Mistake, Node, Value};
use crate::diagnostic::unknown;

pub(super) fn read<'de, T: Deserialize<'de>>(node: &'de Node) -> Result<T, Mistake> {
    T::deserialize(Reader(node)).map_err(|error| Mistake {
        offset: error.offset.unwrap_or(node.start),
        message: error.message,
    })
}

#[derive(Debug)]
struct Error {
    offset: Option<usize>,
    message: String,
}

impl Error {
    /// Says where, unless something further inside said it already.
    fn near(mut self, offset: usize) -> Self {
        self.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error { offset: None, message: message.to_string() }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(unknown("key", field, expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(unknown("word", variant, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("key `{field}` is missing"))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Unit => "null".to_owned(),
            Unexpected::Map => "an object".to_owned(),
            Unexpected::Seq => "an array".to_owned(),
            other => other.to_string(),
        };
        Self::custom(format_args!("expected {expected}, found {found}"))
    }
}

#[derive(Clone, Copy)]
struct Reader<'de>(&'de Node);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(digits) => {
                if let Ok(n) = digits.parse::<u64>() {
                    visitor.visit_u64(n)
                } else if let Ok(n) = digits.parse::<i64>() {
                    visitor.visit_i64(n)
                } else {
                    let shown: String = digits.chars().take(40).collect();
                    let found = format!("number {shown}");
                    Err(de::Error::invalid_type(Unexpected::Other(&found), &visitor))
                }
            }
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items(items.iter())),
            Value::Object(members) => {
                visitor.visit_map(Members { rest: members.iter(), current: None })
            }
        };
        result.map_err(|error| error.near(self.0.start))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error| error.near(self.0.start))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self).map_err(|error| error.near(self.0.start))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let example = known.first().copied().unwrap_or("word");
        match &self.0.value {
            Value::String(word) => visitor.visit_enum(Word(word)),
            Value::Object(members) => match &members[..] {
                [member] => visitor.visit_enum(Tagged(member)),
                _ => Err(de::Error::custom(format_args!(
                    "expected exactly one key here, such as {{\"{example}\": ...}}, found {}",
                    members.len()
                ))),
            },
            _ => Err(de::Error::custom(format_args!(
                "expected a word or {{\"word\": ...}}, known: {}",
                known.join(", ")
            ))),
        }
        .map_err(|error| error.near(self.0.start))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|node| seed.deserialize(Reader(node))).transpose()
    }
}

struct Members<'de> {
    rest: std::slice::Iter<'de, Member>,
    current: Option<&'de Member>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.current = self.rest.next();
        self.current.map(|member| key(member, seed)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.current {
            Some(member) => seed.deserialize(Reader(&member.node)),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

fn key<'de, K: DeserializeSeed<'de>>(member: &'de Member, seed: K) -> Result<K::Value, Error> {
    let text: StrDeserializer<'de, Error> = member.key.as_str().into_deserializer();
    seed.deserialize(text).map_err(|error| error.near(member.start))
}

/// A variant written as a bare word.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Error;
    type Variant = Bare<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Bare<'de>), Error> {
        let text: StrDeserializer<'de, Error> = self.0.into_deserializer();
        Ok((seed.deserialize(text)?, Bare(self.0)))
    }
}

struct Bare<'de>(&'de str);

impl Bare<'_> {
    fn wants_content(&self) -> Error {
        let word = self.0;
        de::Error::custom(format_args!(
            "`{word}` needs its settings: write {{\"{word}\": {{...}}}}"
        ))
    }
}

impl<'de> VariantAccess<'de> for Bare<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        Err(self.wants_content())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(self.wants_content())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(self.wants_content())
    }
}

/// A variant written as `{"word": content}`.
struct Tagged<'de>(&'de Member);

impl<'de> EnumAccess<'de> for Tagged<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((key(self.0, seed)?, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        let message = format_args!("`{0}` has no settings: write \"{0}\"", self.0.key).to_string();
        Err(Error { offset: Some(self.0.start), message })
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Reader(&self.0.node))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        Reader(&self.0.node).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Reader(&self.0.node).deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use crate::spanned::Document;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    enum Shape {
        Dot,
        Circle { radius: u8 },
        Line(Line),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Line {
        length: u32,
        dashed: Option<bool>,
    }

    fn shapes(text: &str) -> Result<Vec<Shape>, String> {
        let document = Document::parse("f", text.into()).expect("sound JSON");
        document.read().map_err(|error| error.to_string())
    }

    #[test]
    fn externally_tagged_words_read_in_every_form() {
        let text = r#"["dot", {"circle": {"radius": 3}}, {"line": {"length": 7, "dashed": null}}]"#;
        let line = Shape::Line(Line { length: 7, dashed: None });
        assert_eq!(shapes(text), Ok(vec![Shape::Dot, Shape::Circle { radius: 3 }, line]));
    }

    #[test]
    fn each_mistake_points_at_its_own_place() {
        for (text, expected) in [
            ("[\n \"dto\"]", "f:2:2: unknown word `dto`, did you mean `dot`?"),
            ("[\n {\"crcle\": {}}]", "f:2:3: unknown word `crcle`, did you mean `circle`?"),
            (
                "[{\"line\": {\n  \"lenght\": 1}}]",
                "f:2:3: unknown key `lenght`, did you mean `length`?",
            ),
            (
                "[{\"line\": {\"length\": 1, \"x\": 1}}]",
                "f:1:25: unknown key `x`, known: length, dashed",
            ),
            ("[{\"line\":\n {}}]", "f:2:2: key `length` is missing"),
            (
                "[{\"circle\": {\"radius\": 300}}]",
                "f:1:24: invalid value: integer `300`, expected u8",
            ),
            ("[{\"circle\": {\"radius\": 1e400}}]", "f:1:24: expected u8, found number 1e400"),
            (
                "[{\"circle\": {\"radius\": -1}}]",
                "f:1:24: invalid value: integer `-1`, expected u8",
            ),
            ("[{\"circle\": {\"radius\": {}}}]", "f:1:24: expected u8, found an object"),
            ("[\"circle\"]", "f:1:2: `circle` needs its settings: write {\"circle\": {...}}"),
            ("[{\"dot\": 1}]", "f:1:3: `dot` has no settings: write \"dot\""),
            ("[{\"dot\": 1, \"line\": 2}]", "f:1:2: expected exactly one key here"),
            ("[7]", "f:1:2: expected a word or {\"word\": ...}, known: dot, circle, line"),
            ("{}", "f:1:1: expected a sequence, found an object"),
        ] {
            let error = shapes(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}\nshould say\n{expected}");
        }
    }
}
