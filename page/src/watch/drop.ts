// Recordings from files: dropped anywhere on the page, or chosen by a button. They stay in this browser.
import { h } from "../dom";
import { Recording } from "../recording";

const MOST_BYTES = 65 * 2 ** 20;

/** Reads a file. Errors name the file and say what is wrong with it. */
export async function readFile(file: File): Promise<Recording> {
  if (file.size > MOST_BYTES) throw new Error(`${file.name}: a recording is not larger than 64 MiB`);
  try {
    return await Recording.open(await file.arrayBuffer());
  } catch (error) {
    throw new Error(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Listens for files that are dropped; `opened` gets them. The frame of the page shows this tab as soon as files are dragged over any. */
export function listenToDrops(opened: (files: File[]) => void): void {
  const veil = h("div", { class: "drop-veil", hidden: true, "aria-hidden": "true" }, h("p", null, "Drop recordings (.wdr) to watch them. They stay in this browser."));
  document.body.append(veil);
  let depth = 0;
  const withFiles = (event: DragEvent): boolean => !!event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  window.addEventListener("dragenter", (event) => {
    if (!withFiles(event)) return;
    event.preventDefault();
    depth += 1;
    veil.hidden = false;
  });
  window.addEventListener("dragover", (event) => {
    if (withFiles(event)) event.preventDefault();
  });
  window.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) veil.hidden = true;
  });
  window.addEventListener("drop", (event) => {
    depth = 0;
    veil.hidden = true;
    if (!withFiles(event)) return;
    event.preventDefault();
    opened([...(event.dataTransfer?.files ?? [])]);
  });
}

/** A button that opens a file dialog. */
export function fileButton(opened: (files: File[]) => void): HTMLElement {
  const input = h("input", { type: "file", accept: ".wdr,application/octet-stream", multiple: true, class: "sr", id: "open-file", onchange: () => {
    opened([...(input.files ?? [])]);
    input.value = "";
  } });
  return h("label", { class: "button file-button" }, input, "Open a file");
}

/** Hands a file to the user. */
export function saveAs(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name for a file that every system takes. */
export function fileName(title: string): string {
  return `${title.replace(/[^A-Za-z0-9@._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80) || "recording"}.wdr`;
}
