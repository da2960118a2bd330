// The data of an exported page: `wavedash page export` writes it into <script type="application/json" id="offline">.
import { ApiError, type Source } from "./api";

/** Answers by path without the query ("/api/runs/ID/metrics"), and files ("/api/recordings/ID") as base64. */
export interface OfflineData {
  answers: Record<string, unknown>;
  files: Record<string, string>;
}

/** The embedded data, or null on a page that a server has sent. */
export function offlineData(): OfflineData | null {
  const element = document.getElementById("offline");
  return element?.textContent ? (JSON.parse(element.textContent) as OfflineData) : null;
}

/** Answers from the embedded data. */
export class OfflineSource implements Source {
  readonly live = false;

  constructor(private readonly data: OfflineData) {}

  async json(path: string): Promise<unknown> {
    const answer = this.data.answers[path.split("?")[0]];
    if (answer === undefined) throw new ApiError(404, "this exported page does not hold that");
    return answer;
  }

  async file(path: string): Promise<ArrayBuffer> {
    const text = this.data.files[path.split("?")[0]];
    if (text === undefined) throw new ApiError(404, "this exported page does not hold that recording");
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  }

  async post(): Promise<unknown> {
    throw new ApiError(403, "an exported page cannot change a run");
  }
}
