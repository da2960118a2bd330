// The data of an exported page: `wavedash page export` writes it into <script type="application/json" id="offline">.
import { ApiError, type Metrics, type Source } from "./api";

/** What the element holds: `packed` is base64 of gzip of JSON (`Answers`); files are base64, by path ("/api/recordings/ID"). */
export interface OfflineData {
  packed: string;
  files: Record<string, string>;
}

/** What a server would answer, by path with or without the query ("/api/runs/ID/metrics"), and why it would not. */
interface Answers {
  answers: Record<string, unknown>;
  errors: Record<string, string>;
}

/** The embedded data, or null on a page that a server has sent. */
export function offlineData(): OfflineData | null {
  const element = document.getElementById("offline");
  return element?.textContent ? (JSON.parse(element.textContent) as OfflineData) : null;
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) found[index] = letters.charCodeAt(index);
  return found;
}

async function unpack(packed: string): Promise<Answers> {
  try {
    const stream = new Blob([bytes(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return (await new Response(stream).json()) as Answers;
  } catch {
    throw new ApiError(500, "the data in this file is damaged, or this browser is too old to unpack it: get the file again");
  }
}

/** The rows after a step and the metrics of these names alone, as a server would answer. */
function part(metrics: Metrics, query: URLSearchParams): Metrics {
  const names = query.get("names")?.split(",").filter(Boolean) ?? metrics.names;
  const after = query.has("after") ? Number(query.get("after")) : -Infinity;
  const first = metrics.steps.filter((step) => step <= after).length;
  const columns = names.filter((name) => Object.hasOwn(metrics.columns, name)).map((name) => [name, metrics.columns[name].slice(first)]);
  return { ...metrics, steps: metrics.steps.slice(first), columns: Object.fromEntries(columns) as Metrics["columns"] };
}

/** Answers from the embedded data. */
export class OfflineSource implements Source {
  readonly live = false;
  private answers: Promise<Answers> | null = null;

  constructor(private readonly data: OfflineData) {}

  async json(path: string): Promise<unknown> {
    this.answers ??= unpack(this.data.packed);
    const { answers, errors } = await this.answers;
    const [asked, query] = path.split("?");
    const question = Object.hasOwn(answers, path) ? path : asked;
    if (!Object.hasOwn(answers, question)) throw new ApiError(404, (Object.hasOwn(errors, question) ? errors[question] : null) ?? "this exported page does not hold that");
    const answer = answers[question];
    // Callers may change what they get, so it is not the original.
    return question.endsWith("/metrics") ? part(answer as Metrics, new URLSearchParams(query)) : structuredClone(answer);
  }

  async file(path: string): Promise<ArrayBuffer> {
    const name = path.split("?")[0];
    const text = Object.hasOwn(this.data.files, name) ? this.data.files[name] : undefined;
    if (text === undefined) throw new ApiError(404, "this exported page does not hold that recording");
    return bytes(text).buffer;
  }

  async post(): Promise<unknown> {
    throw new ApiError(403, "an exported page cannot change a run");
  }
}
