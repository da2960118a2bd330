// Reads something again and again while its tab is shown. A read that fails is told, and the next one is tried all the same.

export class Refresher {
  turn = 0;
  private timer = 0;
  private visible = false;
  private busy = false;
  private again = false;

  /** `read` gets the number of its turn. `told` hears of every failure and, with null, of every success after it. */
  constructor(private readonly seconds: number, private readonly repeated: boolean, private readonly read: (turn: number) => Promise<void>,
    private readonly told: (error: Error | null) => void) {
    document.addEventListener("visibilitychange", () => { if (this.visible && !document.hidden) void this.now(); });
  }

  start(): void {
    this.visible = true;
    void this.now();
  }

  stop(): void {
    this.visible = false;
    window.clearTimeout(this.timer);
  }

  /** Reads now; while a read is under way, once more after it. */
  async now(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    do {
      this.again = false;
      this.turn += 1;
      try {
        await this.read(this.turn);
        this.told(null);
      } catch (error) {
        this.told(error instanceof Error ? error : new Error(String(error)));
      }
    } while (this.again);
    this.busy = false;
    this.wait();
  }

  private wait(): void {
    window.clearTimeout(this.timer);
    if (!this.visible || !this.repeated) return;
    this.timer = window.setTimeout(() => (document.hidden ? this.wait() : void this.now()), this.seconds * 1000);
  }
}
