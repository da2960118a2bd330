// Keys of the watch tab. Fields that take text and open dialogs keep their keys to themselves.

export interface KeyActions {
  toggle(): void;
  step(frames: number): void;
  skip(seconds: number): void;
  speed(step: 1 | -1): void;
  loop(): void;
  jump(direction: 1 | -1): void;
  car(car: number): void;
  camera(mode: "director" | "top" | "free"): void;
  ballCam(): void;
  head(): void;
  players(): void;
  recordings(): void;
  place(): void;
  drive(): void;
  home(): void;
  end(): void;
  /** Keys of the free camera, held or let go. */
  fly(key: string, held: boolean): boolean;
  /** A mode that takes keys first, such as placing; true: it used this one. */
  first(event: KeyboardEvent): boolean;
}

const FLYING = new Set(["w", "a", "s", "d", "q", "e", "shift"]);

function takesText(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select") || target.isContentEditable);
}

/** Whether the key does something to the element that has the focus: Space presses buttons, arrows move sliders. */
function isElements(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (takesText(target)) return true;
  if (event.key === " " || event.key === "Enter") return target.matches("button, a, summary, input, label");
  return event.key.startsWith("Arrow") && target.matches("input, [role=tab], [role=radio]");
}

/** Listens to keys while `active` says so. */
export function listenToKeys(active: () => boolean, actions: KeyActions): void {
  const bindings: Record<string, () => void> = {
    " ": () => actions.toggle(), "k": () => actions.toggle(), ",": () => actions.step(-1), ".": () => actions.step(1),
    "ArrowLeft": () => actions.skip(-5), "ArrowRight": () => actions.skip(5), "-": () => actions.speed(-1), "+": () => actions.speed(1), "=": () => actions.speed(1),
    "l": () => actions.loop(), "[": () => actions.jump(-1), "]": () => actions.jump(1), "b": () => actions.ballCam(),
    "9": () => actions.camera("director"), "0": () => actions.camera("top"), "f": () => actions.camera("free"), "h": () => actions.head(),
    "p": () => actions.players(), "o": () => actions.recordings(), "g": () => actions.place(), "v": () => actions.drive(),
    "Home": () => actions.home(), "End": () => actions.end(),
  };
  for (let car = 1; car <= 8; car++) bindings[String(car)] = () => actions.car(car - 1);

  document.addEventListener("keydown", (event) => {
    if (!active() || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") || isElements(event)) return;
    const key = event.key.length === 1 || event.key === "Shift" ? event.key.toLowerCase() : event.key;
    if (actions.first(event) || (FLYING.has(key) && actions.fly(key, true))) {
      event.preventDefault();
      return;
    }
    const binding = bindings[key];
    if (!binding) return;
    event.preventDefault();
    binding();
  });
  document.addEventListener("keyup", (event) => void actions.fly(event.key.toLowerCase(), false));
  window.addEventListener("blur", () => FLYING.forEach((key) => actions.fly(key, false)));
}
