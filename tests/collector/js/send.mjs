// Sends spans with the official exporter: node send.mjs json|protobuf|grpc URL COUNT
// Prints the ids it sent; the store must hold exactly those.
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { resourceFromAttributes } from "@opentelemetry/resources";

const [kind, url, count] = process.argv.slice(2);
const modules = { json: "http", protobuf: "proto", grpc: "grpc" };
const { OTLPTraceExporter } = await import(`@opentelemetry/exporter-trace-otlp-${modules[kind]}`);
const provider = new BasicTracerProvider({
  resource: resourceFromAttributes({ "service.name": "js-agent" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))],
});
const tracer = provider.getTracer("ai", "1.0");
const sent = [];
for (let i = 0; i < Number(count); i++) {
  const span = tracer.startSpan("chat", { kind: 2 });
  span.setAttribute("gen_ai.usage.input_tokens", Number.MAX_SAFE_INTEGER);
  span.setAttribute("cost", 25.5);
  span.setAttribute("text", "nul \u0000 rocket \u{1F680}");
  span.setAttribute("flags", [true, false]);
  span.addEvent("chunk", { index: i });
  span.end();
  sent.push(span.spanContext().spanId);
}
await provider.shutdown();
console.log(JSON.stringify(sent));
