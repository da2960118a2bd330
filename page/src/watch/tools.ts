// Buttons of what can be done with a game: choose players, recordings, place, drive, keep, link, look into a head.
import { h } from "../dom";
import { NEEDS_TOKEN } from "./chooser";
import { iconButton } from "./icons";

export interface ToolActions {
  players(): void;
  recordings(): void;
  rematch(): void;
  place(): void;
  drive(): void;
  record(): void;
  download(): void;
  copyLink(): void;
  head(): void;
  fullscreen(): void;
  say(text: string, kind?: "info" | "bad"): void;
}

/** What can be done now, and why not otherwise: a sentence, or null where it can. */
export interface Obstacles { place: string | null; drive: string | null; record: string | null; rematch: string | null; download: string | null }

export class Tools {
  /** On the left above the picture. */
  readonly top: HTMLElement;
  /** In the bar below it. */
  readonly bottom: HTMLElement;
  private readonly buttons: Record<keyof Obstacles, HTMLButtonElement>;
  private readonly headButton: HTMLButtonElement;
  private readonly list: HTMLButtonElement;
  private obstacles: Obstacles = { place: NEEDS_TOKEN, drive: NEEDS_TOKEN, record: NEEDS_TOKEN, rematch: NEEDS_TOKEN, download: null };

  constructor(private readonly actions: ToolActions) {
    // Buttons that cannot be used now can still be reached, and say why when they are pressed.
    const unless = (what: keyof Obstacles, act: () => void) => () => {
      const why = this.obstacles[what];
      if (why) this.actions.say(why);
      else act();
    };
    this.buttons = {
      place: iconButton("place", "Place ball and cars by hand", unless("place", () => actions.place()), { key: "G", id: "place", pressed: false }),
      drive: iconButton("drive", "Drive this car", unless("drive", () => actions.drive()), { key: "V", id: "drive", pressed: false }),
      record: iconButton("record", "Keep this game as a recording", unless("record", () => actions.record()), { id: "record", class: "rec-button" }),
      rematch: iconButton("again", "Begin the game anew", unless("rematch", () => actions.rematch()), { id: "rematch" }),
      download: iconButton("download", "Download what is shown", unless("download", () => actions.download()), { id: "download" }),
    };
    this.headButton = iconButton("head", "Inside the bot's head", () => actions.head(), { key: "H", id: "head", pressed: false });
    this.list = iconButton("recordings", "Recordings", () => actions.recordings(), { key: "O", id: "open-recordings", text: "Recordings", pressed: false });
    this.top = h("div", { class: "tools-top" },
      iconButton("players", "Choose players", () => actions.players(), { key: "P", id: "choose", text: "Players" }), this.list);
    this.bottom = h("div", { class: "group tools", role: "group", "aria-label": "This game" },
      this.buttons.rematch, this.buttons.place, this.buttons.drive, this.buttons.record, this.buttons.download,
      iconButton("link", "Copy a link to this moment", () => actions.copyLink(), { id: "link" }), this.headButton,
      iconButton("full", "Full screen", () => actions.fullscreen(), { id: "full", class: "wide" }));
  }

  update(obstacles: Obstacles, pressed: { place: boolean; drive: boolean; head: boolean; recordings: boolean }): void {
    this.obstacles = obstacles;
    for (const [what, button] of Object.entries(this.buttons)) {
      const why = obstacles[what as keyof Obstacles];
      button.setAttribute("aria-disabled", String(!!why));
      button.dataset.why = why ?? "";
    }
    this.buttons.place.setAttribute("aria-pressed", String(pressed.place));
    this.buttons.drive.setAttribute("aria-pressed", String(pressed.drive));
    this.headButton.setAttribute("aria-pressed", String(pressed.head));
    this.list.setAttribute("aria-pressed", String(pressed.recordings));
  }
}
