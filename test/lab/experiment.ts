/** Options, folder, end and table of results of every experiment. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { readFlags, readNumber } from '../../scripts/flags.ts'
import { textTable } from '../../scripts/text-table.ts'

/** The folder of the project. */
export const root = resolve(import.meta.dirname, '../..')

/** An option of the command line. */
export interface Option<Value> {
  /** Placeholder of its value in the usage; null if it takes none. */
  readonly shown: string | null
  readonly text: string
  /** Whether it may be repeated. */
  readonly multiple?: true
  /** Returns its value. Exits with 2 if what was given is none. */
  read(given: readonly string[], name: string): Value
}

const withDefault = (text: string, value: string | number | null): string =>
  value === null || value === '' ? text : `${text} (default ${value})`

/** An option that takes a number of `least` or more. */
export const number = <const Default extends number | null>(
  shown: string,
  text: string,
  otherwise: Default,
  least = 0,
): Option<number | Default> => ({
  shown,
  text: withDefault(text, otherwise),
  read: ([given], name) => (given === undefined ? otherwise : readNumber(`--${name}`, given, least)),
})

/** An option that takes a text. */
export const text = <const Default extends string | null>(
  shown: string,
  what: string,
  otherwise: Default,
): Option<string | Default> => ({
  shown,
  text: withDefault(what, otherwise),
  read: ([given]) => given ?? otherwise,
})

/** An option that takes a text and may be repeated. */
export const texts = (shown: string, what: string): Option<readonly string[]> => ({
  shown,
  text: `${what}; may be repeated`,
  multiple: true,
  read: (given) => given,
})

/** An option without a value. */
export const flag = (what: string): Option<boolean> => ({ shown: null, text: what, read: (given) => given.length > 0 })

/** The option `--seed`: a number of its own for each run, unless an earlier run is repeated. */
export const seed: Option<number> = {
  shown: 'N',
  text: 'repeat the choices of an earlier run',
  read: ([given], name) => (given === undefined ? Date.now() % 1e9 : Math.trunc(readNumber(`--${name}`, given))),
}

type Values<Options> = { readonly [Name in keyof Options]: Options[Name] extends Option<infer Value> ? Value : never }

/**
 * Reads the options of the experiment from the command line, and the words beside them, which are refused unless `shownWords`
 * stands for them in the usage. Prints the usage for `--help`, and exits with 2 if an option is unknown or has no value.
 *
 * @param about what the usage says after the options
 */
export function readOptions<const Options extends Readonly<Record<string, Option<unknown>>>>(
  options: Options,
  shownWords = '',
  about = '',
): { readonly values: Values<Options>; readonly words: readonly string[]; readonly usage: string } {
  const all = Object.entries(options)
  const heads = all.map(([name, { shown }]) => (shown === null ? `--${name}` : `--${name} ${shown}`))
  const width = Math.max(...heads.map(({ length }) => length)) + 2
  const lines = all.map(([, option], at) => `  ${(heads[at] as string).padEnd(width)}${option.text}`)
  const name = basename(process.argv[1] ?? '', '.ts')
  const head = ['Usage: npm run lab --', name, all.length > 0 ? '[OPTIONS]' : '', shownWords].filter(Boolean).join(' ')
  const usage = [head, ...(lines.length > 0 ? [lines.join('\n')] : []), ...(about === '' ? [] : [about])].join('\n\n')
  const parsed = readFlags(usage, {
    allowPositionals: shownWords !== '',
    options: Object.fromEntries(
      all.map(([name, { shown, multiple = false }]) => [
        name,
        { type: shown === null ? 'boolean' : 'string', multiple },
      ]),
    ),
  })
  const values = all.map(([name, option]) => {
    const given = parsed.values[name]
    return [name, option.read([given ?? []].flat().map(String), name)]
  })
  return { values: Object.fromEntries(values) as Values<Options>, words: parsed.positionals, usage }
}

/** Ends an experiment that was asked for something that does not exist. */
export function refuse(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

const closers: (() => unknown)[] = []

/** Calls `close` when the experiment has ended, whatever ended it; what was opened last is closed first. */
export function defer(close: () => unknown): void {
  closers.push(close)
}

/** Closes what was opened. The runner calls it. */
export async function closeAll(): Promise<void> {
  for (let close = closers.pop(); close; close = closers.pop()) await close()
}

/** Returns a new folder, which is removed when the experiment has ended. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-lab-'))
  defer(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Prints a line. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints rows of cells as a table whose first column is aligned to the left. */
export function sayTable(rows: readonly (readonly (string | number)[])[], left: readonly number[] = [0]): void {
  say(
    textTable(
      rows.map((row) => row.map(String)),
      left,
    ),
  )
}
