//! Methods of `int` and `float`.

use halite_value::{BigInt, Value};
use num_traits::{FromPrimitive, Signed, ToPrimitive};

use super::{Pos, index};
use crate::jinja::{
    call::{Args, Signature},
    error::{Class, Error, value_error},
    eval::{Interp, Result},
    objects::text_of,
};

pub(crate) const INT: [&str; 6] =
    ["bit_length", "bit_count", "conjugate", "as_integer_ratio", "to_bytes", "from_bytes"];
pub(crate) const FLOAT: [&str; 4] = ["is_integer", "hex", "conjugate", "as_integer_ratio"];

fn big(value: &Value) -> BigInt {
    match value {
        Value::BigInt(int) => (**int).clone(),
        other => other.to_int().unwrap_or(0).into(),
    }
}

pub(crate) fn call(
    interp: &mut Interp<'_>,
    number: &Value,
    name: &str,
    args: Args,
) -> Result<Value> {
    if let Value::Float(float) = number {
        Pos::new("float", "method", args, 0, 0)?;
        return Ok(match name {
            "is_integer" => Value::Bool(float.is_finite() && float.fract() == 0.0),
            "hex" => Value::from(hex(*float)),
            "conjugate" => Value::Float(*float),
            _ => return ratio(interp, *float),
        });
    }
    let int = big(number);
    Ok(match name {
        "bit_length" => Value::from(int.bits()),
        "bit_count" => {
            let (_, digits) = int.to_u64_digits();
            Value::from(digits.iter().map(|digit| u64::from(digit.count_ones())).sum::<u64>())
        }
        "as_integer_ratio" => Value::tuple([Value::from_bigint(int), Value::Int(1)]),
        "to_bytes" => return to_bytes(&int, args),
        "from_bytes" => return from_bytes(args),
        _ => interp.positive(number)?,
    })
}

fn to_bytes(int: &BigInt, args: Args) -> Result<Value> {
    let mut bound = Signature::new("to_bytes(length=, byteorder=, *, signed=)").bind(args)?;
    let length = bound.opt(0).map(|length| index(&length)).transpose()?.unwrap_or(1);
    let order = bound.opt(1);
    let little = order.as_ref().and_then(text_of).is_some_and(|order| order == "little");
    let signed = bound.take(2).truthy();
    let length = usize::try_from(length).unwrap_or(0).min(1 << 16);
    if int.is_negative() && !signed {
        return Err(Error::new(Class::OverflowError, "can't convert negative int to unsigned"));
    }
    let mut bytes = if signed { int.to_signed_bytes_le() } else { int.to_bytes_le().1 };
    while bytes.len() > length && bytes.last() == Some(&0) && !signed {
        bytes.pop();
    }
    if bytes.len() > length {
        return Err(Error::new(Class::OverflowError, "int too big to convert"));
    }
    bytes.resize(length, if int.is_negative() { 0xff } else { 0 });
    if !little {
        bytes.reverse();
    }
    Ok(Value::bytes(bytes))
}

fn from_bytes(args: Args) -> Result<Value> {
    let mut bound = Signature::new("from_bytes(bytes, byteorder=, *, signed=)").bind(args)?;
    let bytes = bound.take(0);
    let bytes = bytes.as_bytes().unwrap_or_default();
    let order = bound.opt(1);
    let little = order.as_ref().and_then(text_of).is_some_and(|order| order == "little");
    let signed = bound.take(2).truthy();
    Ok(Value::from_bigint(match (little, signed) {
        (true, true) => BigInt::from_signed_bytes_le(bytes),
        (false, true) => BigInt::from_signed_bytes_be(bytes),
        (true, false) => BigInt::from_bytes_le(num_bigint::Sign::Plus, bytes),
        (false, false) => BigInt::from_bytes_be(num_bigint::Sign::Plus, bytes),
    }))
}

fn ratio(interp: &mut Interp<'_>, float: f64) -> Result<Value> {
    if !float.is_finite() {
        return Err(value_error(if float.is_nan() {
            "cannot convert NaN to integer ratio"
        } else {
            "cannot convert Infinity to integer ratio"
        }));
    }
    let (mut top, mut shift) = (float, 0u32);
    while top.fract() != 0.0 && shift < 1100 {
        top *= 2.0;
        shift += 1;
    }
    let top = BigInt::from_f64(top).unwrap_or_default();
    interp.tuple(vec![Value::from_bigint(top), Value::from_bigint(BigInt::from(1) << shift)])
}

fn hex(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    let sign = if float.is_sign_negative() { "-" } else { "" };
    if float.is_infinite() {
        return format!("{sign}inf");
    }
    let bits = float.to_bits();
    let exponent = ((bits >> 52) & 0x7ff).to_i64().unwrap_or(0);
    let mantissa = bits & ((1 << 52) - 1);
    match (exponent, mantissa) {
        (0, 0) => format!("{sign}0x0.0p+0"),
        (0, _) => format!("{sign}0x0.{mantissa:013x}p-1022"),
        _ => format!("{sign}0x1.{mantissa:013x}p{:+}", exponent - 1023),
    }
}
