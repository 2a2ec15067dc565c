//! Grains and pillar of a machine without a master.

use std::sync::Arc;

use halite_pillar::{Compiler, Renderer, Request, Source};
use halite_spec::{Cx, Result};
use halite_value::{Dict, Value};

use crate::{Pipes, Rendering as _, Sources};

/// Collects grains here and compiles pillar from `pillar_roots`.
pub struct Masterless {
    pipes: Arc<Pipes>,
}

impl Masterless {
    pub fn new(pipes: Arc<Pipes>) -> Self {
        Self { pipes }
    }
}

impl Sources for Masterless {
    fn grains(&self, cx: &Cx) -> Result<Dict> {
        let python = self.pipes.python();
        let mut collector = halite_grains::Collector::new();
        if let Some(python) = &python {
            collector = collector.with(
                "users' grains",
                Box::new(|grains| python.grains(&cx.opts, grains, Some(cx))),
            );
        }
        let report = collector.collect(&*cx.host, &cx.opts);
        for problem in &report.problems {
            tracing::warn!("grains: {problem}");
        }
        Ok(report.grains)
    }

    fn pillar(&self, cx: &Cx, overrides: &Dict, pillarenv: Option<&str>) -> Result<Dict> {
        self.compiled(cx, overrides, pillarenv, None)
    }

    fn pillar_with(&self, cx: &Cx, overrides: &Dict, ext: &Dict) -> Result<Dict> {
        self.compiled(cx, overrides, None, Some(ext))
    }
}

impl Masterless {
    fn compiled(
        &self,
        cx: &Cx,
        overrides: &Dict,
        pillarenv: Option<&str>,
        ext: Option<&Dict>,
    ) -> Result<Dict> {
        let renderer = Arc::new(Templates { cx: cx.clone(), pipes: Arc::clone(&self.pipes) });
        let request = Request {
            opts: cx.opts.clone(),
            minion_id: cx.id().into(),
            grains: cx.grains.clone(),
            saltenv: None,
            pillarenv: pillarenv.map(str::to_owned),
            pillar_override: overrides.clone(),
            override_last: true,
            current: cx.pillar.clone(),
            ext: ext.cloned(),
            ..Request::default()
        };
        let mut compiler = Compiler::new(Arc::clone(&cx.host), renderer);
        for users in self.pipes.ext_pillars(cx) {
            compiler = compiler.with_ext(users);
        }
        let compiled = compiler.compile(&request);
        for failure in &compiled.failures {
            tracing::error!(
                "the pillar file {} of {} does not render: {}",
                failure.sls,
                failure.saltenv,
                failure.error
            );
        }
        Ok(compiled.pillar)
    }
}

/// Renders pillar files with the functions of this minion.
struct Templates {
    cx: Cx,
    pipes: Arc<Pipes>,
}

impl Renderer for Templates {
    fn render(&self, source: &Source<'_>) -> Result<Value> {
        self.pipes.pillar(&self.cx, None, source)
    }

    fn matches(&self, kind: &str, target: &Value) -> Option<bool> {
        self.pipes.custom_match(&self.cx, kind, target)
    }
}
