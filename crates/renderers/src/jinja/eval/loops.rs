//! Loops: `for`, its conditions, its recursion, and the object `loop`.

use std::sync::Arc;

use halite_value::Value;
use parking_lot::Mutex;

use super::{Flow, Frame, Interp, Result};
use crate::jinja::{
    ast::{For, Target},
    call::Args,
    error::type_error,
    iter::{PyIter, Stream},
    objects::*,
    ops::recursion,
};

impl Interp<'_> {
    pub(super) fn for_loop(
        &mut self,
        node: &For,
        line: u32,
        iterable: &Value,
        frame: &mut Frame,
        depth0: i64,
        recurse: Option<&Arc<LoopBody>>,
    ) -> Result<()> {
        let mut iter = self.iter(iterable)?;
        let mut sized = iterable.clone();
        if let Some(func) = node.test_func {
            iter = self.loop_test(func, iter, frame);
            sized = Value::Null;
        }
        let mut completed = false;
        let state = node.loop_var.map(|var| {
            let own = Arc::new(Loop {
                state: Mutex::new(LoopState {
                    iterable: sized,
                    iter: None,
                    index0: -1,
                    length: None,
                    after: None,
                    current: None,
                    before: None,
                    changed: None,
                }),
                depth0,
                recurse: recurse.cloned(),
            });
            (var, own)
        });
        if let Some((_, own)) = &state {
            own.state.lock().iter = Some(std::mem::replace(&mut iter, PyIter::empty()));
        }
        Self::enter_first(&node.scope, frame);
        loop {
            frame.line = line;
            let item = match &state {
                Some((_, own)) => self.loop_next(own)?,
                None => self.next(&mut iter)?,
            };
            let Some(item) = item else { break };
            match &node.target {
                Target::Name(_, var) => frame.set(*var, Some(item)),
                target => self.assign(target, item, frame).map_err(|error| match iterable {
                    Value::Dict(_) => {
                        error.with_note("a loop over a dict has its keys; `.items()` has pairs")
                    }
                    _ => error,
                })?,
            }
            if let Some((var, own)) = &state {
                frame.set(*var, Some(Value::Object(own.clone())));
            }
            Self::enter_again(&node.scope, frame);
            match self.deeper(|interp| interp.body(&node.body, frame))? {
                Flow::Normal => completed = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        // Jinja notes a round at its end, so one that was cut short does not count.
        if !completed && !node.or_else.is_empty() {
            self.scoped(&node.or_else, &node.else_scope, frame)?;
        }
        Ok(())
    }

    pub(super) fn loop_next(&mut self, own: &Loop) -> Result<Option<Value>> {
        let mut state = own.state.lock();
        let item = match state.after.take() {
            Some(after) => Some(after),
            None => {
                match &mut state.iter {
                    None => return Ok(None),
                    Some(iter) if !iter.calls_back() => self.next(iter)?,
                    taken @ Some(_) => {
                        // What runs to find the item may look at this very loop.
                        let Some(mut iter) = taken.take() else { return Ok(None) };
                        drop(state);
                        let item = self.next(&mut iter);
                        state = own.state.lock();
                        state.iter = Some(iter);
                        item?
                    }
                }
            }
        };
        if let Some(item) = &item {
            state.index0 += 1;
            state.before = state.current.replace(item.clone());
        }
        Ok(item)
    }

    pub(super) fn loop_peek(&mut self, own: &Loop) -> Result<Option<Value>> {
        let mut state = own.state.lock();
        if state.after.is_none() {
            let Some(mut iter) = state.iter.take() else { return Ok(None) };
            drop(state);
            let item = self.next(&mut iter);
            state = own.state.lock();
            state.iter = Some(iter);
            state.after = item?;
        }
        Ok(state.after.clone())
    }

    pub(crate) fn loop_length(&mut self, own: &Loop) -> Result<i64> {
        let (known, iterable) = {
            let state = own.state.lock();
            (state.length, state.iterable.clone())
        };
        if let Some(length) = known {
            return Ok(length);
        }
        let length = match self.length(&iterable)? {
            Some(length) => length as i64,
            None => {
                let Some(iter) = own.state.lock().iter.take() else { return Ok(0) };
                let rest = self.collect_iter(iter)?;
                let mut state = own.state.lock();
                let length =
                    rest.len() as i64 + state.index0 + 1 + i64::from(state.after.is_some());
                state.iter = Some(PyIter::Vec(rest.into_iter()));
                length
            }
        };
        own.state.lock().length = Some(length);
        Ok(length)
    }

    pub(crate) fn loop_attribute(&mut self, own: &Loop, name: &str) -> Result<Option<Value>> {
        let index0 = own.state.lock().index0;
        Ok(Some(match name {
            "index" => Value::Int(index0 + 1),
            "index0" => Value::Int(index0),
            "first" => Value::Bool(index0 == 0),
            "last" => Value::Bool(self.loop_peek(own)?.is_none()),
            "length" => Value::Int(self.loop_length(own)?),
            "revindex" => Value::Int(self.loop_length(own)? - index0),
            "revindex0" => Value::Int(self.loop_length(own)? - index0 - 1),
            "depth" => Value::Int(own.depth0 + 1),
            "depth0" => Value::Int(own.depth0),
            "previtem" => {
                let before = own.state.lock().before.clone();
                before.filter(|_| index0 > 0).unwrap_or_else(|| {
                    Undefined::value(
                        self.strict(),
                        Missing::Hint("there is no previous item".into()),
                    )
                })
            }
            "nextitem" => self.loop_peek(own)?.unwrap_or_else(|| {
                Undefined::value(self.strict(), Missing::Hint("there is no next item".into()))
            }),
            _ => return Ok(None),
        }))
    }

    pub(crate) fn loop_method(&mut self, own: &Loop, name: &str, args: Args) -> Result<Value> {
        match name {
            "cycle" if args.positional.is_empty() => Err(type_error("no items for cycling given")),
            "cycle" => {
                let index = own.state.lock().index0.max(0) as usize;
                Ok(args.positional[index % args.positional.len()].clone())
            }
            _ => {
                let before = own.state.lock().changed.clone();
                let same = match before {
                    Some(before) => {
                        self.eq(&Value::tuple(before), &Value::tuple(args.positional.clone()))?
                    }
                    None => false,
                };
                if !same {
                    own.state.lock().changed = Some(args.positional);
                }
                Ok(Value::Bool(!same))
            }
        }
    }

    /// Calls `loop(…)`: the body of a recursive loop for other items.
    pub(crate) fn call_loop(&mut self, own: &Loop, mut args: Args) -> Result<Value> {
        let Some(body) = own.recurse.clone() else {
            return Err(type_error(
                "The loop must have the 'recursive' marker to be called recursively.",
            ));
        };
        if args.positional.is_empty() {
            return Err(type_error(
                "LoopContext.__call__() missing 1 required positional argument: 'iterable'",
            ));
        }
        let iterable = args.positional.swap_remove(0);
        let text = self.recurse(&body, &iterable, own.depth0 + 1)?;
        Ok(if body.context.autoescape() { markup(text) } else { Value::from(text) })
    }

    pub(super) fn recurse(
        &mut self,
        body: &Arc<LoopBody>,
        iterable: &Value,
        depth0: i64,
    ) -> Result<String> {
        if self.calls >= self.env.limits.calls {
            return Err(recursion("while calling a Python object"));
        }
        let template = body.template.clone();
        let func = &template.code.funcs[body.func];
        let Some(node) = &func.loop_node else { return Ok(String::new()) };
        let mut frame = self.frame(&template, body.func, &body.context, body.captured.clone());
        self.calls += 1;
        let result = self.capture(|interp| {
            interp.deeper(|interp| {
                interp
                    .for_loop(node, func.line, iterable, &mut frame, depth0, Some(body))
                    .map_err(|error| error.at(frame.spot()))
            })?;
            Ok(Flow::Normal)
        });
        self.calls -= 1;
        Ok(result?.0)
    }

    /// Makes an iterator of the items that a loop's condition lets pass.
    pub(super) fn loop_test(&mut self, func: usize, iter: PyIter, frame: &Frame) -> PyIter {
        let captured = self.close_over(func, frame);
        let mut inner = self.frame(&frame.template, func, &frame.context, captured);
        let template = inner.template.clone();
        self.enter(&template.code.funcs[func].scope, &mut inner);
        PyIter::Stream(Box::new(LoopTest { frame: inner, iter }))
    }
}

struct LoopTest {
    frame: Frame,
    iter: PyIter,
}

impl Stream for LoopTest {
    fn next(&mut self, interp: &mut Interp<'_>) -> Result<Option<Value>> {
        let template = self.frame.template.clone();
        let func = &template.code.funcs[self.frame.func];
        let Some((target, test)) = &func.test else { return Ok(None) };
        while let Some(item) = interp.next(&mut self.iter)? {
            self.frame.line = test.line;
            let taken = interp.assign(target, item.clone(), &mut self.frame).and_then(|()| {
                let test = interp.eval(test, &mut self.frame)?;
                interp.truthy(&test)
            });
            if taken.map_err(|error| error.at(self.frame.spot()))? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}
