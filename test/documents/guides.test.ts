/**
 * Follows the guides and the examples as a reader would, with the package as npm packs it: writes each file that a fence
 * names, and runs each command. What follows is a fence:
 *
 *     sh             its commands succeed
 *     sh refused     they fail
 *     sh background  the last one goes on, and says that it is open
 *     text           lines that the commands before it have printed
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { skipWithoutAnvil } from '../gateway/sandbox/usdc-client.ts'
import { installPacked } from '../support/packed.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')
const EXAMPLES = join(root, 'docs/examples')
const GUIDES = join(root, 'docs/guides')
/** Ports that pages name. Each reader gets others. */
const PORTS = [4021, 8080]

/** How long commands may take to do what a page says. */
const PATIENCE_MS = 15_000
const POLL_MS = 200

/** Replaced by the packages that are installed already: ours is not published. */
const INSTALL = 'npm install'

const packageIn = (project: string) =>
  JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string; dependencies: object }

interface Fence {
  readonly language: string
  /** What follows the language: the path of a file, or a word about commands. */
  readonly about: string
  readonly text: string
}

const fencesIn = (page: string): readonly Fence[] =>
  [...page.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)].map(([, language = '', about = '', text = '']) => ({
    language,
    about,
    text,
  }))

/** Somebody who follows a page in a folder. */
class Reader {
  readonly #folder: string
  readonly #packages: string
  readonly #ports: ReadonlyMap<number, number>
  readonly #running: { readonly child: ReturnType<typeof spawn>; readonly ended: Promise<unknown> }[] = []
  #place = '.'

  constructor(folder: string, packages: string, ports: ReadonlyMap<number, number>) {
    this.#folder = folder
    this.#packages = packages
    this.#ports = ports
  }

  async follow(page: string): Promise<void> {
    const fences = fencesIn(page)
    for (const [at, fence] of fences.entries()) {
      const { language, about, text } = fence
      if (language === 'sh') {
        const next = fences[at + 1]
        const lines = next?.language === 'text' ? next.text.trim().split('\n') : []
        await this.#run(text.trim().split('\n'), about, lines)
      } else if (about !== '') this.#write(about, text)
    }
  }

  async leave(): Promise<void> {
    for (const { child, ended } of this.#running.reverse()) {
      // As Ctrl-C does: to the program and to those that it has started.
      process.kill(-(child.pid as number), 'SIGTERM')
      await ended
    }
  }

  get #cwd(): string {
    return join(this.#folder, this.#place)
  }

  get #environment(): NodeJS.ProcessEnv {
    const port = String(this.#ports.get(PORTS[0] as number))
    return { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: port }
  }

  /** The text with ports of this reader. */
  #here(text: string): string {
    return [...this.#ports].reduce((all, [port, own]) => all.replaceAll(String(port), String(own)), text)
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.#cwd, path)), { recursive: true })
    writeFileSync(join(this.#cwd, path), this.#here(text))
  }

  async #run(commands: readonly string[], about: string, lines: readonly string[]): Promise<void> {
    const last = about === 'background' ? commands.at(-1) : undefined
    const script = (last === undefined ? commands : commands.slice(0, -1)).map((command) =>
      command === INSTALL ? `ln -s ${this.#packages} node_modules` : this.#here(command),
    )
    if (script.length > 0) await this.#tryUntilRight(script, about === 'refused', lines)
    for (const command of script) if (command.startsWith('cd ')) this.#place = join(this.#place, command.slice(3))
    if (last !== undefined) await this.#start(last)
  }

  /** Runs commands until they end as the page says: a change of a file before them shows within two seconds. */
  async #tryUntilRight(script: readonly string[], isRefused: boolean, lines: readonly string[]): Promise<void> {
    const options = { cwd: this.#cwd, env: this.#environment, encoding: 'utf8' } as const
    for (const began = performance.now(); ;) {
      const { status, stdout, stderr } = spawnSync('bash', ['-ec', script.join('\n')], options)
      const printed = stdout + stderr
      const missing = lines.filter((line) => !printed.includes(line))
      if ((status === 0) !== isRefused && missing.length === 0) return
      if (performance.now() - began > PATIENCE_MS)
        throw new Error([...script, `ended with ${status}, without:`, ...missing, 'It printed:', printed].join('\n'))
      await setTimeout(POLL_MS)
    }
  }

  async #start(command: string): Promise<void> {
    const child = spawn('bash', ['-c', `exec ${command}`], {
      cwd: this.#cwd,
      env: this.#environment,
      detached: true,
    })
    const ended = new Promise((done) => child.once('close', done))
    this.#running.push({ child, ended })
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await Promise.race([
      until(() => /is open/.test(printed)),
      ended.then(() => {
        throw new Error(`${command} ended:\n${printed}`)
      }),
    ])
  }
}

describe('a reader with the package', function () {
  this.timeout(300_000)
  let folder: string
  let packages: string
  before(function () {
    skipWithoutAnvil(this)
    folder = mkdtempSync(join(tmpdir(), 'tollgate-reader-'))
    installPacked(folder)
    packages = join(folder, 'node_modules')
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  async function follow(file: string, place: string): Promise<void> {
    const ports = new Map<number, number>()
    for (const port of PORTS) ports.set(port, await freePort())
    const reader = new Reader(place, packages, ports)
    try {
      await reader.follow(readFileSync(file, 'utf8'))
    } finally {
      await reader.leave()
    }
  }

  for (const name of readdirSync(GUIDES).filter((file) => file !== 'README.md'))
    it(`does what docs/guides/${name} says in an empty folder`, () => {
      const place = join(folder, name)
      mkdirSync(place)
      return follow(join(GUIDES, name), place)
    })

  const examples = readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^[^/]+\/README\.md$/.test(file),
  )
  for (const file of examples)
    it(`opens docs/examples/${dirname(file)} and buys from it`, () => {
      const place = join(folder, dirname(file))
      cpSync(join(EXAMPLES, dirname(file)), place, { recursive: true })
      expect(packageIn(place).dependencies).to.deep.equal({ tollgate: `^${packageIn(root).version}` })
      return follow(join(EXAMPLES, file), place)
    })
})
