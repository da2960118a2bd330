// Fingers and the mouse on the picture: one drags, two pinch, the wheel moves nearer and further away.

export interface PointerTarget {
  /** Takes hold of something at a place; true: moves go there until it is let go, and not to the camera. */
  grab(x: number, y: number): boolean;
  move(x: number, y: number): void;
  letGo(): void;
  /** The wheel was turned; true: it was used. */
  wheel(amount: number, shift: boolean): boolean;
  drag(dx: number, dy: number): void;
  /** Nearer (below 1) or further away. */
  dolly(factor: number): void;
}

export function listenToPointers(canvas: HTMLElement, target: PointerTarget): void {
  const down = new Map<number, { x: number; y: number }>();
  let grabbed = false;
  let apart = 0;

  const spread = (): number => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 1) grabbed = target.grab(event.clientX, event.clientY);
    else if (down.size === 2) {
      if (grabbed) target.letGo();
      grabbed = false;
      apart = spread();
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return;
    const [dx, dy] = [event.clientX - last.x, event.clientY - last.y];
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 2) {
      const now = spread();
      if (now > 0 && apart > 0) target.dolly(apart / now);
      apart = now;
    } else if (grabbed) {
      target.move(event.clientX, event.clientY);
    } else if (down.size === 1 && (dx || dy)) {
      target.drag(dx, dy);
    }
  });
  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId)) return;
    if (grabbed) target.letGo();
    grabbed = false;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    // Lines and pages are scaled to pixels, so that all wheels feel alike. Shift turns the wheel sideways in some browsers.
    const amount = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1);
    if (!target.wheel(amount, event.shiftKey)) target.dolly(Math.exp(Math.max(-200, Math.min(200, amount)) * 0.0015));
  }, { passive: false });
}
