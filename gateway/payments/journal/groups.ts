/**
 * Group commit: while one commit is in flight the next group collects. Waiting for the disk is shared by all that came
 * meanwhile, and nobody waits longer than for two commits.
 */

export interface Command {
  /** Commands of one kind can be written by one statement. */
  readonly kind: string
  /** Two commands of one key never share a group: they run in the order they came. */
  readonly key: string
  /** About how many bytes it writes. */
  readonly size: number
}

export interface Groups<Item extends Command, Result> {
  /** Resolves with this command's own result once it is durable. */
  write(command: Item): Promise<Result>
  /** Lets what was asked for finish, and refuses what comes later. */
  close(): Promise<void>
}

export interface GroupOptions<Item, Result> {
  /** Writes all or nothing. Results in the order of the commands. */
  commit(group: readonly Item[]): Promise<readonly Result[]>
  /** True where the failed commit certainly wrote nothing, so that its commands may be tried one by one. */
  wroteNothing(error: unknown): boolean
}

interface Waiting<Item, Result> {
  readonly command: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

const MAX_COMMANDS = 256
const MAX_BYTES = 8_000_000

export function createGroups<Item extends Command, Result>(options: GroupOptions<Item, Result>): Groups<Item, Result> {
  let queue: Waiting<Item, Result>[] = []
  let running: Promise<void> | null = null
  let closed = false

  /** Takes the first command and all others of its kind, each key once and in order. */
  function nextGroup(): Waiting<Item, Result>[] {
    const group: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const passed = new Set<string>()
    const kind = queue[0]?.command.kind
    let bytes = 0
    for (const waiting of queue) {
      const { command } = waiting
      const fits = group.length === 0 || (group.length < MAX_COMMANDS && bytes + command.size <= MAX_BYTES)
      if (fits && command.kind === kind && !passed.has(command.key)) {
        group.push(waiting)
        bytes += command.size
      } else left.push(waiting)
      passed.add(command.key)
    }
    queue = left
    return group
  }

  async function commit(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.commit(group.map(({ command }) => command))
      group.forEach(({ resolve }, at) => resolve(results[at] as Result))
    } catch (error) {
      if (group.length > 1 && options.wroteNothing(error)) for (const waiting of group) await commit([waiting])
      else for (const { reject } of group) reject(error)
    }
  }

  async function run(): Promise<void> {
    // What is asked for in the same tick shares the first group.
    await Promise.resolve()
    while (queue.length > 0) await commit(nextGroup())
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
