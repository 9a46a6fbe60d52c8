"""When each alert of deploy/monitoring/rules.yaml must fire: series of a healthy server, and what is changed."""

TARGET = 'namespace="linserve", job="linserve", instance="a:1"'
MODEL = TARGET + ', model="m", version="1"'
OTHER_UP = 'up{namespace="linserve", job="linserve", instance="b:1"}'
# An instance under another name serves.
OTHER_SERVES = {f'{name}{{namespace="other", job="blue", instance="c:1"}}': "1" for name in ("up", "linserve_build_info")}
HEALTHY = {
    f"up{{{TARGET}}}": "1",
    OTHER_UP: "1",
    f"linserve_build_info{{{TARGET}}}": "1",
    # Started when the clock of promtool did.
    f"process_start_time_seconds{{{TARGET}}}": "0",
    f"process_resident_memory_bytes{{{TARGET}}}": "1000000000",
    f"process_open_fds{{{TARGET}}}": "100",
    f"process_max_fds{{{TARGET}}}": "1000",
    f'linserve_requests_total{{{TARGET}, rpc="Embed", code="OK"}}': "+600",
    f'linserve_requests_total{{{TARGET}, rpc="Embed", code="INTERNAL"}}': "+1",
    f'linserve_results_total{{{MODEL}, code="OK"}}': "+600",
    f'linserve_results_total{{{MODEL}, code="INTERNAL"}}': "+1",
    f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="Embed", le="1"}}': "+597",
    f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="Embed", le="2.5"}}': "+600",
    f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="Embed", le="+Inf"}}': "+600",
    **{f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="tei.EmbedStream", le="{le}"}}': growth
       for le, growth in (("1", "+1"), ("2.5", "+600"), ("+Inf", "+600"))},
    f"linserve_queue_delay_estimate_seconds{{{MODEL}}}": "0.15",
    f"linserve_tokens_total{{{MODEL}}}": "+1000",
    f'linserve_padded_tokens_total{{{MODEL}, mode="bucket"}}': "+300",
    f'linserve_rejected_total{{{MODEL}, reason="queue"}}': "+10",
    f'linserve_rejected_total{{{MODEL}, reason="invalid"}}': "+300",
    f'linserve_refused_total{{{TARGET}, reason="inflight"}}': "+10",
    f'linserve_model_state{{{MODEL}, state="READY"}}': "1",
    f'linserve_model_state{{{MODEL}, state="LOADING"}}': "0",
    f'linserve_model_state{{{MODEL}, state="UNAVAILABLE"}}': "0",
    f'linserve_model_loads_total{{{MODEL}, result="failed"}}': "0",
    f'linserve_reload_failures_total{{{TARGET}, what="tokens"}}': "0",
    f"linserve_certificate_remaining_seconds{{{TARGET}}}": "2592000",
    f'linserve_spans_total{{{TARGET}, result="sent"}}': "+600",
    f'linserve_spans_total{{{TARGET}, result="failed"}}': "0",
    f"linserve_replicas_lost{{{MODEL}}}": "0",
    f'linserve_sessions_closed_total{{{MODEL}, reason="ended"}}': "+10",
    f'linserve_sessions_closed_total{{{MODEL}, reason="evicted"}}': "0",
    f'linserve_device_fallback{{{TARGET}, reason="no_plugin"}}': "0",
    f"linserve_reset_floods_total{{{TARGET}}}": "0",
    f"linserve_memory_floods_total{{{TARGET}}}": "0",
}

# The alert, what is changed, and after how many minutes it fires. A value "+N" grows by N a minute, "A then B"
# changes after half of the time, from nothing where A is "none"; None takes the series away.
CASES = [
    ("LinserveAbsent", {f"linserve_build_info{{{TARGET}}}": None}, 10),
    ("LinserveDown", {f"up{{{TARGET}}}": "0", OTHER_UP: "0"}, 10),
    ("LinserveDown", {f'linserve_model_state{{{MODEL}, state="READY"}}': "0"}, 10),
    # What has ended has no series but `up`.
    ("LinserveDown", {f"up{{{TARGET}}}": "1 then 0", OTHER_UP: "1 then 0", f'linserve_model_state{{{MODEL}, state="READY"}}': None,
                      f"linserve_build_info{{{TARGET}}}": "1 then stale", **OTHER_SERVES}, 30),
    # No pod is left of it, while others serve under another name.
    ("LinserveGone", {f"up{{{TARGET}}}": "1 then stale", OTHER_UP: "1 then stale",
                      f"linserve_build_info{{{TARGET}}}": "1 then stale", **OTHER_SERVES}, 30),
    ("LinserveInstanceDown", {f"up{{{TARGET}}}": "0"}, 15),
    ("LinserveRestarts", {f"process_start_time_seconds{{{TARGET}}}": "+60"}, 20),
    ("LinserveErrors", {f'linserve_requests_total{{{TARGET}, rpc="Embed", code="INTERNAL"}}': "+10"}, 20),
    ("LinserveErrors", {f'linserve_requests_total{{{TARGET}, rpc="Embed", code="UNAVAILABLE"}}': "+10"}, 20),
    # Seven times what the objective allows, for hours.
    ("LinserveErrors", {f'linserve_requests_total{{{TARGET}, rpc="Embed", code="INTERNAL"}}': "+4.2"}, 7 * 60),
    ("LinserveResultErrors", {f'linserve_results_total{{{MODEL}, code="INTERNAL"}}': "+10"}, 20),
    ("LinserveSlow",
     {f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="Embed", le="1"}}': "+590"}, 30),
    # Each API but the streams.
    ("LinserveSlow",
     {f'linserve_request_duration_seconds_bucket{{{TARGET}, rpc="tei.EmbedAll", le="{le}"}}': growth
      for le, growth in (("1", "+590"), ("2.5", "+600"), ("+Inf", "+600"))}, 30),
    ("LinserveQueueDelay", {f"linserve_queue_delay_estimate_seconds{{{MODEL}}}": "0.3"}, 10),
    ("LinserveOverload", {f'linserve_rejected_total{{{MODEL}, reason="queue"}}': "+40"}, 20),
    ("LinservePaddingWaste", {f'linserve_padded_tokens_total{{{MODEL}, mode="bucket"}}': "+800"}, 45),
    ("LinserveModelNotReady", {f'linserve_model_state{{{MODEL}, state="LOADING"}}': "1"}, 20),
    ("LinserveModelNotReady", {f'linserve_model_state{{{MODEL}, state="UNAVAILABLE"}}': "1"}, 20),
    ("LinserveOverload", {f'linserve_refused_total{{{TARGET}, reason="inflight"}}': "+40"}, 20),
    # The version was never seen before.
    ("LinserveModelLoadFailed", {f'linserve_model_loads_total{{{MODEL}, result="failed"}}': "none then 1"}, 20),
    ("LinserveModelLoadFailed", {f'linserve_model_loads_total{{{MODEL}, result="failed"}}': "0 then 1"}, 20),
    ("LinserveReloadFailed", {f'linserve_reload_failures_total{{{TARGET}, what="tokens"}}': "0 then 1"}, 20),
    ("LinserveCertificateExpires", {f"linserve_certificate_remaining_seconds{{{TARGET}}}": "864000"}, 30),
    ("LinserveSpansLost", {f'linserve_spans_total{{{TARGET}, result="failed"}}': "+100"}, 30),
    ("LinserveReplicasLost", {f"linserve_replicas_lost{{{MODEL}}}": "1"}, 10),
    ("LinserveSessionsEvicted", {f'linserve_sessions_closed_total{{{MODEL}, reason="evicted"}}': "+1"}, 20),
    ("LinserveOnCpu", {f'linserve_device_fallback{{{TARGET}, reason="no_plugin"}}': "1"}, 10),
    # 60 times 2 MB an hour.
    ("LinserveMemoryGrows", {f"process_resident_memory_bytes{{{TARGET}}}": "+2000000"}, 9 * 60),
    ("LinserveDescriptors", {f"process_open_fds{{{TARGET}}}": "900"}, 10),
    ("LinserveFlood", {f"linserve_reset_floods_total{{{TARGET}}}": "0 then 1"}, 20),
    ("LinserveFlood", {f"linserve_memory_floods_total{{{TARGET}}}": "0 then 1"}, 20),
]

# What is changed without an alert: a few calls at night, of which one in four fails.
QUIET = {f'linserve_requests_total{{{TARGET}, rpc="Embed", code="OK"}}': "+3",
         f'linserve_requests_total{{{TARGET}, rpc="Embed", code="INTERNAL"}}': "+1",
         f'linserve_results_total{{{MODEL}, code="OK"}}': "+3",
         f'linserve_rejected_total{{{MODEL}, reason="queue"}}': "+1"}


def values(text, minutes):
    if text.startswith("+"):
        return f"0{text}x{minutes}"
    if " then " in text:
        before, after = text.split(" then ")
        half = minutes // 2
        if before == "none":
            before = "_"
        return f"{before}x{half} " + (after if after == "stale" else f"{after}x{minutes - half}")
    return f"{text}x{minutes}"


def unit_test(name, changes, minutes, firing):
    """For `promtool test rules`: that exactly these alerts fire."""
    series = {**HEALTHY, **changes}
    return {"name": name, "interval": "1m",
            "input_series": [{"series": key, "values": values(text, minutes)}
                             for key, text in series.items() if text is not None],
            "promql_expr_test": [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                                  "eval_time": f"{minutes}m",
                                  "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}
                                                  for alert in firing]}]}


def unit_tests(rule_file):
    """One where all is well, and one of each case."""
    return {"rule_files": [rule_file], "evaluation_interval": "1m",
            "tests": [unit_test("healthy", {}, 9 * 60, []), unit_test("quiet", QUIET, 30, []),
                      *(unit_test(alert, changes, minutes, [alert]) for alert, changes, minutes in CASES)]}
