//! `selvedge schema`

use std::io;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::cli::{SchemaArgs, SchemaOf, Session};
use crate::exit::Exit;
use crate::report::json;
use crate::schema::Scenario;
use crate::schema::machine::Machine;

/// Prints the JSON Schema of a format.
///
/// # Errors
/// When it cannot be written.
pub fn schema(args: &SchemaArgs, session: &mut Session<'_>) -> io::Result<Exit> {
    json::document(session.out, &of(args.of))?;
    Ok(Exit::Passed)
}

/// The JSON Schema of a format, made from the very types that read or write it.
#[must_use]
pub fn of(format: SchemaOf) -> Schema {
    fn written<T: JsonSchema>() -> Schema {
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
    }
    match format {
        SchemaOf::Scenario => schemars::schema_for!(Scenario),
        SchemaOf::Machine => schemars::schema_for!(Machine),
        SchemaOf::Result => written::<json::RunResult>(),
    }
}
