/**
 * Group commit: while one commit runs, the next group of commands collects. All commands of a group share one wait for
 * the disk, and none waits for more than two commits. The journal groups the reads of many calls in the same way.
 */

export interface Command {
  /** Commands of one kind can be written by one statement. */
  readonly kind: string
  /** Two commands with the same key never share a group: they run in the order in which they came. */
  readonly key: string
  /** Roughly the number of bytes it writes. */
  readonly size: number
  /** True if nobody waits for it: it is written when nothing else is to be written, or together with many like it. */
  readonly canWait?: boolean
}

export interface GroupCommit<Item extends Command, Result> {
  /** Resolves with the command's own result once it is durable. */
  write(command: Item): Promise<Result>
  /** Finishes pending commands and refuses later ones. */
  close(): Promise<void>
}

interface GroupCommitOptions<Item, Result> {
  /** Writes the whole group or nothing. Returns the results in the order of the commands. */
  commit(group: readonly Item[]): Promise<readonly Result[]>
  /** True if the failed commit certainly wrote nothing, so that its commands can be tried one by one. */
  wroteNothing(error: unknown): boolean
}

interface Pending<Item, Result> {
  readonly command: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

const MAX_COMMANDS = 256
const MAX_BYTES = 8_000_000
/** From this number on, commands that can wait are written before others. */
const MAX_WAITING = 64

/** Creates the queue of commands in front of one database. */
export function createGroupCommit<Item extends Command, Result>(
  options: GroupCommitOptions<Item, Result>,
): GroupCommit<Item, Result> {
  let queue: Pending<Item, Result>[] = []
  let running: Promise<void> | null = null
  let closed = false

  async function commit(group: readonly Pending<Item, Result>[]): Promise<void> {
    try {
      const results = await options.commit(group.map(({ command }) => command))
      group.forEach(({ resolve }, at) => resolve(results[at] as Result))
    } catch (error) {
      if (group.length > 1 && options.wroteNothing(error)) for (const pending of group) await commit([pending])
      else for (const { reject } of group) reject(error)
    }
  }

  async function run(): Promise<void> {
    // Commands of the same tick share the first group.
    await Promise.resolve()
    while (queue.length > 0) {
      const { group, rest } = nextGroup(queue)
      queue = rest
      await commit(group)
    }
    running = null
  }

  return {
    write(command) {
      if (closed) return Promise.reject(new Error('the journal is closed'))
      const result = new Promise<Result>((resolve, reject) => queue.push({ command, resolve, reject }))
      running ??= run()
      return result
    },
    async close() {
      closed = true
      await running
    },
  }
}

/** Takes a command and all others of its kind that fit, each key once and in order. */
function nextGroup<Item extends Command, Result>(queue: readonly Pending<Item, Result>[]) {
  const group: Pending<Item, Result>[] = []
  const rest: Pending<Item, Result>[] = []
  const keys = new Set<string>()
  const kind = nextKind(queue)
  let bytes = 0
  for (const pending of queue) {
    const { command } = pending
    const fits = group.length === 0 || (group.length < MAX_COMMANDS && bytes + command.size <= MAX_BYTES)
    if (fits && command.kind === kind && !keys.has(command.key)) {
      group.push(pending)
      bytes += command.size
    } else rest.push(pending)
    keys.add(command.key)
  }
  return { group, rest }
}

/** The kind of the first command that cannot wait and has none of its own key before it, or of the first command. */
function nextKind<Item extends Command, Result>(queue: readonly Pending<Item, Result>[]): string | undefined {
  const [first] = queue
  if (!first?.command.canWait) return first?.command.kind
  const keys = new Set<string>()
  let waiting = 0
  for (const { command } of queue) {
    if (command.canWait && ++waiting === MAX_WAITING) break
    if (!command.canWait && !keys.has(command.key)) return command.kind
    keys.add(command.key)
  }
  return first.command.kind
}
