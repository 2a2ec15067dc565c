//! `#[function]` and `#[derive(Args)]`: arguments are declared once, where they are used.
//!
//! Both read the declaration (name, type, doc comment, `#[default(…)]`) and emit a plain
//! `static` description plus an adaptor that binds a call to it; nothing else. `cargo expand`
//! shows no magic. `#[function] fn contains(…)` emits a module `contains` beside the function
//! (modules and functions have separate name spaces in Rust) that holds `SPEC`.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{
    Attribute, DeriveInput, Expr, FnArg, Ident, ItemFn, LitStr, Pat, Type, parse_macro_input,
    spanned::Spanned,
};

/// One declared argument.
struct Param {
    ident: Ident,
    name: String,
    ty: Type,
    doc: Tokens,
    default: Option<Expr>,
    /// What `sys.argspec` shows as the default, where it is written otherwise than we keep it.
    shown: Option<Expr>,
    aliases: Vec<String>,
    rest: bool,
    by: By,
    /// It stands for the arguments its type declares.
    group: bool,
}

/// How it can be given: `halite_spec::By`.
enum By {
    Any,
    Name,
    Keyword,
    Position,
}

/// Makes a Rust function callable by its Salt name.
///
/// The first parameter is `cx: &Cx`; the others are arguments. `#[default(expr)]` on a parameter
/// makes it optional, as does the type `Option<_>` (default None); `rest: Rest` takes whatever is
/// left. `#[function(name = "list")]` gives another name than the Rust one. An `Option<_>` that has
/// to be given all the same (None is a value) is marked `#[arg(required)]`; one that Salt takes out
/// of `**kwargs` is `#[arg(by_name)]`, one that Salt declares after `*args` `#[arg(keyword)]`, a
/// `Rest` that is Salt's `*args` alone `#[arg(by_position)]` (one called `kwargs` or `rest`, or one
/// with `#[arg(by_name)]`, takes names only). `#[shown(expr)]` is the
/// default `sys.argspec` tells, where Salt writes the same thing in another way. `#[group] ring: Ring`
/// stands for the arguments `Ring` declares (`#[derive(Args)]`), at that place of the list: what
/// several functions take alike is declared once.
#[proc_macro_attribute]
pub fn function(attr: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemFn);
    expand_function(attr.into(), item).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Binds a state's arguments to the fields of a struct, by name. `#[arg(name = "x")]` renames,
/// `#[arg(alias = "y")]` accepts another name too, `#[default(expr)]` makes a field optional, and a
/// field marked `#[group]` stands for the arguments its type declares; so does the only field of
/// `struct Wait(Run)`, a state that takes what another takes. `#[arg(defaults)]` on the struct
/// makes the declared defaults its `Default`, for callers in Rust; `#[arg(open)]` says that Salt's
/// takes any other keyword too.
#[proc_macro_derive(Args, attributes(default, arg, shown, group))]
pub fn args(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand_args(&item).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand_function(attr: Tokens, mut item: ItemFn) -> syn::Result<Tokens> {
    let mut salt_name = item.sig.ident.to_string();
    if !attr.is_empty() {
        let meta: syn::MetaNameValue = syn::parse2(attr)?;
        salt_name = literal(&meta.value)?;
    }
    let mut params = Vec::new();
    for input in item.sig.inputs.iter_mut().skip(1) {
        let FnArg::Typed(input) = input else {
            return Err(syn::Error::new(input.span(), "a function has no self"));
        };
        let Pat::Ident(pat) = &*input.pat else {
            return Err(syn::Error::new(input.span(), "name the argument"));
        };
        params.push(param(&pat.ident, &input.ty, &input.attrs)?);
        input.attrs.clear();
    }
    let ident = &item.sig.ident;
    let doc = doc_of(&item.attrs);
    let specs = specs_of(&params);
    let binds = params.iter().map(|param| {
        let ident = &param.ident;
        let bind = bind_of(param);
        quote! { let #ident = #bind; }
    });
    let names = params.iter().map(|param| &param.ident);
    Ok(quote! {
        // The signature is Salt's: arguments are bound by value, and there may be thirty.
        #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)]
        #item

        #[doc(hidden)]
        pub mod #ident {
            #[allow(unused_imports)]
            use super::*;

            pub static SPEC: ::halite_spec::Function = ::halite_spec::Function {
                name: #salt_name,
                own_name: #salt_name,
                doc: #doc,
                params: #specs,
                call: |cx, call| {
                    let mut binder = ::halite_spec::Binder::new(call, SPEC.params);
                    #(#binds)*
                    binder.finish()?;
                    ::halite_spec::IntoReturn::into_return(super::#ident(cx, #(#names),*))
                },
            };
        }
    })
}

fn expand_args(item: &DeriveInput) -> syn::Result<Tokens> {
    let syn::Data::Struct(data) = &item.data else {
        return Err(syn::Error::new(item.span(), "arguments are a struct"));
    };
    let around = matches!(&data.fields, syn::Fields::Unnamed(fields) if fields.unnamed.len() == 1);
    let mut params = Vec::new();
    for field in &data.fields {
        let Some(ident) = &field.ident else {
            if around {
                let inner = Ident::new("inner", field.span());
                params.push(Param { group: true, ..param(&inner, &field.ty, &field.attrs)? });
                continue;
            }
            return Err(syn::Error::new(field.span(), "name the field"));
        };
        params.push(param(ident, &field.ty, &field.attrs)?);
    }
    let ident = &item.ident;
    let doc = doc_of(&item.attrs);
    let specs = specs_of(&params);
    let binds = params.iter().map(|param| {
        let ident = &param.ident;
        let bind = bind_of(param);
        if around {
            bind
        } else {
            quote! { #ident: #bind }
        }
    });
    let made = if around {
        quote! { Self(#(#binds)*) }
    } else {
        quote! { Self { #(#binds),* } }
    };
    let words = words_of(item)?;
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let defaults = has("defaults").then(|| defaults_of(item, &params));
    let open = match params.as_slice() {
        [Param { ty, group: true, .. }] if around => quote! { <#ty as ::halite_spec::Args>::OPEN },
        _ => {
            let open = has("open");
            quote! { #open }
        }
    };
    Ok(quote! {
        #defaults

        impl ::halite_spec::Args for #ident {
            const DOC: &'static str = #doc;
            const PARAMS: &'static [::halite_spec::Param] = #specs;
            const OPEN: bool = #open;

            fn bind(binder: &mut ::halite_spec::Binder) -> ::halite_spec::Result<Self> {
                Ok(#made)
            }
        }
    })
}

/// What `#[arg(…)]` says of a struct.
fn words_of(item: &DeriveInput) -> syn::Result<Vec<String>> {
    let mut words = Vec::new();
    for attr in item.attrs.iter().filter(|attr| attr.path().is_ident("arg")) {
        attr.parse_nested_meta(|meta| {
            if !(meta.path.is_ident("defaults") || meta.path.is_ident("open")) {
                return Err(meta.error("a struct of arguments takes `defaults` and `open`"));
            }
            words.extend(meta.path.get_ident().map(ToString::to_string));
            Ok(())
        })?;
    }
    Ok(words)
}

/// `impl Default` out of the declared defaults.
fn defaults_of(item: &DeriveInput, params: &[Param]) -> Tokens {
    let ident = &item.ident;
    let fields = params.iter().map(|Param { ident, default, .. }| match default {
        Some(default) => quote! { #ident: #default },
        None => quote! { #ident: ::core::default::Default::default() },
    });
    quote! {
        impl ::core::default::Default for #ident {
            fn default() -> Self {
                Self { #(#fields),* }
            }
        }
    }
}

fn param(ident: &Ident, ty: &Type, attrs: &[Attribute]) -> syn::Result<Param> {
    let mut name = ident.to_string().trim_start_matches("r#").to_owned();
    let mut default = None;
    let mut aliases = Vec::new();
    let mut shown = None;
    let mut required = false;
    let mut group = false;
    let mut by = By::Any;
    for attr in attrs {
        if attr.path().is_ident("default") {
            default = Some(attr.parse_args::<Expr>()?);
        } else if attr.path().is_ident("shown") {
            shown = Some(attr.parse_args::<Expr>()?);
        } else if attr.path().is_ident("group") {
            group = true;
        } else if attr.path().is_ident("arg") {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("required") {
                    required = true;
                    return Ok(());
                }
                if meta.path.is_ident("by_name") {
                    by = By::Name;
                    return Ok(());
                }
                if meta.path.is_ident("keyword") {
                    by = By::Keyword;
                    return Ok(());
                }
                if meta.path.is_ident("by_position") {
                    by = By::Position;
                    return Ok(());
                }
                let text = meta.value()?.parse::<LitStr>()?.value();
                if meta.path.is_ident("name") {
                    name = text;
                } else {
                    aliases.push(text);
                }
                Ok(())
            })?;
        }
    }
    if default.is_none() && !required && last(ty).as_deref() == Some("Option") {
        default = Some(syn::parse_quote!(None));
    }
    let rest = last(ty).as_deref() == Some("Rest");
    if rest && matches!(name.as_str(), "kwargs" | "rest") {
        by = By::Name;
    }
    Ok(Param {
        ident: ident.clone(),
        name,
        ty: ty.clone(),
        doc: doc_of(attrs),
        default,
        shown,
        aliases,
        rest,
        by,
        group,
    })
}

/// `Option` of `std::option::Option<T>`; a type handed on by a macro comes in a group.
fn last(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Group(group) => last(&group.elem),
        Type::Paren(paren) => last(&paren.elem),
        _ => None,
    }
}

/// The descriptions of all arguments as one list, the groups' among them.
fn specs_of(params: &[Param]) -> Tokens {
    if !params.iter().any(|param| param.group) {
        let specs = params.iter().map(spec_of);
        return quote! { &[#(#specs),*] };
    }
    let parts = params.chunk_by(|a, b| !a.group && !b.group).map(|part| match part {
        [Param { ty, group: true, .. }] => quote! { <#ty as ::halite_spec::Args>::PARAMS },
        own => {
            let specs = own.iter().map(spec_of);
            quote! { &[#(#specs),*] }
        }
    });
    quote! {{
        const PARTS: &[&[::halite_spec::Param]] = &[#(#parts),*];
        const ALL: [::halite_spec::Param; ::halite_spec::Param::count(PARTS)] =
            ::halite_spec::Param::join(PARTS);
        &ALL
    }}
}

fn spec_of(param: &Param) -> Tokens {
    let Param { name, ty, doc, default, shown, aliases, rest, by, .. } = param;
    let by = match by {
        By::Any => quote! { Any },
        By::Name => quote! { Name },
        By::Keyword => quote! { Keyword },
        By::Position => quote! { Position },
    };
    let default = match (default, shown) {
        (Some(_), Some(shown)) => quote! {
            Some(|| ::halite_spec::ToDefault::to_default(&#shown))
        },
        (Some(default), None) => quote! {
            Some(|| { let value: #ty = #default; ::halite_spec::ToDefault::to_default(&value) })
        },
        (None, _) => quote! { None },
    };
    quote! {
        ::halite_spec::Param {
            name: #name,
            doc: #doc,
            kind: <#ty as ::halite_spec::FromArg>::KIND,
            default: #default,
            aliases: &[#(#aliases),*],
            rest: #rest,
            by: ::halite_spec::By::#by,
        }
    }
}

fn bind_of(param: &Param) -> Tokens {
    let Param { name, ty, default, aliases, rest, by, group, .. } = param;
    if *rest && matches!(by, By::Position) {
        return quote! { binder.positions() };
    }
    if *rest {
        return quote! { binder.rest() };
    }
    if *group {
        return quote! { binder.group::<#ty>()? };
    }
    let aliases = quote! { &[#(#aliases),*] };
    match default {
        Some(default) => quote! {
            match binder.optional::<#ty>(#name, #aliases)? { Some(value) => value, None => #default }
        },
        None => quote! { binder.required::<#ty>(#name, #aliases)? },
    }
}

/// The doc comment as one text, each line without its first space. A macro that declares several
/// functions may put a line together: `#[doc = concat!(…)]`.
fn doc_of(attrs: &[Attribute]) -> Tokens {
    let lines = attrs.iter().filter(|attr| attr.path().is_ident("doc")).filter_map(|attr| {
        let syn::Meta::NameValue(meta) = &attr.meta else { return None };
        Some(&meta.value)
    });
    let lines: Vec<Tokens> = lines
        .map(|line| match literal(line) {
            Ok(text) => {
                let text = text.strip_prefix(' ').unwrap_or(&text).to_owned();
                quote! { #text }
            }
            Err(_) => quote! { #line },
        })
        .collect();
    match lines.as_slice() {
        [first, others @ ..] => quote! { ::core::concat!(#first #(, "\n", #others)*) },
        [] => quote! { "" },
    }
}

fn literal(expr: &Expr) -> syn::Result<String> {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            syn::Lit::Str(text) => Ok(text.value()),
            other => Err(syn::Error::new(other.span(), "a text is expected")),
        },
        other => Err(syn::Error::new(other.span(), "a text is expected")),
    }
}
