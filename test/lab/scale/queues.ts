/**
 * Queues of a discrete-event simulation: cores, event loops, group commits and syncs of a disk. Times are in seconds.
 * Nothing here waits: `Clock.run` jumps from one event to the next.
 */

type Step = () => void

/** The clock of one simulation, with the events that are still to come. Events of the same moment keep their order. */
export class Clock {
  now = 0
  readonly #times: number[] = []
  readonly #steps: Step[] = []
  readonly #order: number[] = []
  #count = 0

  /** Runs `step` after `delay` seconds. */
  after(delay: number, step: Step): void {
    const at = this.#times.length
    this.#times.push(this.now + delay)
    this.#steps.push(step)
    this.#order.push(this.#count++)
    this.#rise(at)
  }

  /** Runs the events up to `end`, and leaves the clock there. */
  run(end: number): void {
    while (this.#times.length > 0 && (this.#times[0] as number) <= end) {
      this.now = this.#times[0] as number
      this.#takeFirst()()
    }
    this.now = end
  }

  /** A binary heap in three arrays: the children of the event at i are at 2i + 1 and 2i + 2. */
  #rise(from: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #takeFirst(): Step {
    const last = this.#times.length - 1
    this.#swap(0, last)
    const step = this.#steps[last] as Step
    this.#times.length = this.#steps.length = this.#order.length = last
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      if (left >= last) return step
      const right = left + 1
      const child = right < last && this.#isBefore(right, left) ? right : left
      if (!this.#isBefore(child, at)) return step
      this.#swap(at, child)
      at = child
    }
  }

  #isBefore(one: number, other: number): boolean {
    const difference = (this.#times[one] as number) - (this.#times[other] as number)
    return difference < 0 || (difference === 0 && (this.#order[one] as number) < (this.#order[other] as number))
  }

  #swap(one: number, other: number): void {
    for (const column of [this.#times, this.#order]) {
      const kept = column[one] as number
      column[one] = column[other] as number
      column[other] = kept
    }
    const kept = this.#steps[one] as Step
    this.#steps[one] = this.#steps[other] as Step
    this.#steps[other] = kept
  }
}

/** First in, first out, without moving the others when one leaves. */
export class Line<Item> {
  #items: Item[] = []
  #first = 0

  get length(): number {
    return this.#items.length - this.#first
  }

  get first(): Item | undefined {
    return this.#items[this.#first]
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  take(): Item {
    const item = this.#items[this.#first++] as Item
    if (this.#first > 1_000 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first)
      this.#first = 0
    }
    return item
  }
}

/**
 * The cores of one machine. Tasks start in the order in which they come and run to their end.
 *
 * With one core and tasks of one length this is the M/D/1 queue. Its mean wait is ρs / 2(1 - ρ) for service time s and
 * utilisation ρ (Pollaczek-Khinchine): tasks of 2 ms at 400 a second wait 0.8 · 2 / 0.4 = 4 ms. Source: Kleinrock,
 * "Queueing Systems", volume 1, Wiley 1975, section 5.6.
 */
export class Cores {
  /** Seconds of work done so far, over all cores. */
  busySeconds = 0
  readonly #clock: Clock
  readonly #waiting = new Line<{ readonly seconds: number; readonly done: Step }>()
  #free: number

  constructor(clock: Clock, count: number) {
    this.#clock = clock
    this.#free = count
  }

  run(seconds: number, done: Step): void {
    this.#waiting.push({ seconds, done })
    this.#start()
  }

  #start(): void {
    while (this.#free > 0 && this.#waiting.length > 0) {
      const { seconds, done } = this.#waiting.take()
      this.#free -= 1
      this.#clock.after(seconds, () => {
        this.busySeconds += seconds
        this.#free += 1
        done()
        this.#start()
      })
    }
  }
}

/** Lets one in at a time: the lock of a database file. Each holder gets a function that lets the next one in. */
export class Lock {
  readonly #waiting = new Line<(release: Step) => void>()
  #isHeld = false

  take(hold: (release: Step) => void): void {
    this.#waiting.push(hold)
    if (!this.#isHeld) this.#next()
  }

  #next(): void {
    this.#isHeld = this.#waiting.length > 0
    if (this.#isHeld) this.#waiting.take()(() => this.#next())
  }
}

/** The event loop of one process: its tasks run one at a time, each on a core of its machine. */
export class EventLoop {
  busySeconds = 0
  readonly #cores: Cores
  readonly #turns = new Lock()

  constructor(cores: Cores) {
    this.#cores = cores
  }

  run(seconds: number, done: Step): void {
    this.#turns.take((release) =>
      this.#cores.run(seconds, () => {
        this.busySeconds += seconds
        done()
        release()
      }),
    )
  }
}

/** The most changes that one commit takes: MAX_COMMANDS in gateway/payments/journal/group-commit.ts. */
export const MAX_GROUP = 256

/**
 * The group commits of one process, as gateway/payments/journal/group-commit.ts makes them. While one commit runs, the
 * next group collects. A group has changes of one kind: that of the change that has waited longest.
 */
export class GroupCommit<Kind extends string> {
  changes = 0
  commits = 0
  readonly #clock: Clock
  readonly #commit: (size: number, done: Step) => void
  readonly #kinds = new Map<Kind, Line<{ readonly at: number; readonly done: Step }>>()
  #isRunning = false

  /** @param commit writes a group of this size and calls back when it is durable */
  constructor(clock: Clock, commit: (size: number, done: Step) => void) {
    this.#clock = clock
    this.#commit = commit
  }

  write(kind: Kind, done: Step): void {
    const line = this.#kinds.get(kind) ?? new Line()
    this.#kinds.set(kind, line)
    line.push({ at: this.changes++, done })
    if (this.#isRunning) return
    this.#isRunning = true
    // Changes of the same moment share the first group.
    this.#clock.after(0, () => this.#next())
  }

  #next(): void {
    let line: Line<{ readonly at: number; readonly done: Step }> | undefined
    for (const one of this.#kinds.values())
      if (one.first && one.first.at < (line?.first?.at ?? Number.POSITIVE_INFINITY)) line = one
    this.#isRunning = line !== undefined
    if (!line) return
    const group = Array.from({ length: Math.min(line.length, MAX_GROUP) }, () => line.take().done)
    this.commits += 1
    this.#commit(group.length, () => {
      for (const done of group) done()
      this.#next()
    })
  }
}

/**
 * The log of a database server. A sync makes durable what waited when it began; what comes later waits for the next one.
 * So a commit waits for at most two syncs, and any number of connections share them.
 */
export class SharedSync {
  syncs = 0
  readonly #clock: Clock
  readonly #seconds: number
  #waiting: Step[] = []
  #isRunning = false

  constructor(clock: Clock, seconds: number) {
    this.#clock = clock
    this.#seconds = seconds
  }

  sync(done: Step): void {
    this.#waiting.push(done)
    if (!this.#isRunning) this.#next()
  }

  #next(): void {
    const group = this.#waiting
    this.#isRunning = group.length > 0
    if (!this.#isRunning) return
    this.#waiting = []
    this.syncs += 1
    this.#clock.after(this.#seconds, () => {
      for (const done of group) done()
      this.#next()
    })
  }
}
