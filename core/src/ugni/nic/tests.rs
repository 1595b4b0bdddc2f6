//! Two NICs face to face, without a fabric between them.
