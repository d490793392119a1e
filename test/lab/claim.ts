/** The files of figures that the benches write, with the claims that the methodology page opens with. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import type { Claim } from '../../schemas/types.d.ts'
import type { FoundClaim } from '../support/measure.ts'
import { flag, root, text } from './experiment.ts'

/** The options of a bench that writes files of figures. */
export const SAVING = {
  write: flag('save the figures and claims that the methodology page shows'),
  into: text('FOLDER', 'save them below this folder instead of the project', null),
}

/** A file of figures. */
export interface FiguresFile {
  readonly claims: readonly Claim[]
  readonly [figures: string]: unknown
}

/** Saves a file of figures, with the date of today on its claims. `file` is its path in the project. */
export async function saveFigures(
  file: string,
  { claims, ...figures }: { readonly claims: readonly FoundClaim[]; readonly [figures: string]: unknown },
  into: string | null,
): Promise<void> {
  const today = new Date().toISOString().slice(0, 10)
  const dated = claims.map((claim): Claim => ({ ...claim, measured_on: today }))
  const options = { ...(await resolveConfig(join(root, file))), parser: 'json' }
  const path = join(into ?? root, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, await format(JSON.stringify({ claims: dated, ...figures }), options))
}

/** Two runs differ by less on other machines, where sums are rounded in another order. */
export const NOISE = 0.01
/** Figures that depend on the machine and its load, by the name of the field or of the row. */
const IS_TIMED = /\b(?:milli)?seconds?\b/
const NUMBER = /-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?/g

/** What differs between two versions of a file of figures by more than NOISE, as "path: old, now new". Dates and times taken do not count. */
export function differences(old: unknown, now: unknown, path = ''): string[] {
  if (isRecord(old) && isRecord(now)) {
    if (isTimedRow(old) && isTimedRow(now)) return []
    const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
    const compared = names.filter((name) => name !== 'measured_on' && !IS_TIMED.test(name))
    return compared.flatMap((name) => differences(old[name], now[name], path === '' ? name : `${path}.${name}`))
  }
  return isSame(old, now) ? [] : [`${path}: ${JSON.stringify(old)}, now ${JSON.stringify(now)}`]
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const isTimedRow = (value: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(value) && typeof value[0] === 'string' && IS_TIMED.test(value[0])

/** True for equal values, for numbers that are close, and for texts that differ only in numbers that are close. */
function isSame(old: unknown, now: unknown): boolean {
  if (typeof old === 'number' && typeof now === 'number') return isClose(old, now)
  if (typeof old !== 'string' || typeof now !== 'string') return old === now
  const [before, after] = [old, now].map((value) => [...value.matchAll(NUMBER)].map(([one]) => numberIn(one)))
  return (
    old.replaceAll(NUMBER, '#') === now.replaceAll(NUMBER, '#') &&
    before!.every((value, at) => isClose(value, after![at]!))
  )
}

const numberIn = (written: string): number => Number(written.replaceAll(',', ''))

const isClose = (one: number, other: number): boolean =>
  Math.abs(one - other) <= NOISE * Math.max(Math.abs(one), Math.abs(other))
