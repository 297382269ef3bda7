"""HTML of a fitted estimator for Jupyter: a table of its fit, below scikit-learn's diagram."""

from __future__ import annotations

from html import escape

from gpuboost.reports.report import FitReport

ROW = '<tr><th style="text-align:left">{}</th><td style="text-align:left">{}</td></tr>'


def summary(report: FitReport, evals: dict[str, dict[str, list[float]]], best_iteration: int | None) -> str:
    """An HTML table of the fit: rounds, data, device, seconds, and metrics of the last or best round."""
    shown = {
        "rounds": f"{report.rounds_kept}" + ("" if best_iteration is None else f" (the best of {report.rounds})"),
        "learned from": f"{report.rows:,} rows, {report.features:,} features",
        "device": f"{report.device}, {report.threads} threads",
        "time": ", ".join(f"{name} {seconds:.2f} s" for name, seconds in report.seconds.items()),
        **({} if report.sampling is None else {"sampling": str(report.sampling)}),
        **({"theory": str(report.verdict)} if report.shows_verdict else {}),
    }
    shown_round = -1 if best_iteration is None else best_iteration
    for name, metrics in evals.items():
        shown[name] = ", ".join(f"{metric} {values[shown_round]:.5g}" for metric, values in metrics.items() if values)
    rows = "".join(ROW.format(escape(name), escape(text)) for name, text in shown.items())
    return f"<table>{rows}</table>"
