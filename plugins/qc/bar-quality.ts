import { InvalidInput, type Upload } from 'tollgate/plugin'
import type { BarQualityReport, BarQualityRequest } from '../../schemas/types.d.ts'
import { readBarFile } from './bar-file.ts'
import { type ReadBars, readRequest } from './bar-input.ts'
import { invalid } from './bar-places.ts'
import { checkBars, type CheckOptions } from './check-bars.ts'
import { parseInterval } from './bar-interval.ts'
import { qualityReport } from './quality-report.ts'
import { repairBars } from './repair-bars.ts'
import { zoneNote } from './bar-reading.ts'
import { createZone, UTC, type Zone } from '../lib/time/time-zones.ts'

type Settings = Partial<Exclude<BarQualityRequest, readonly unknown[]>>

/** The file of a body that has one, instead of bars in JSON. */
export function fileIn(body: unknown): Upload | null {
  const file = (body as { readonly file?: Upload } | null)?.file
  return file?.bytes === undefined ? null : file
}

/** Checks the bars of a request body and returns the report. Throws InvalidInput that names the field or row. */
export default function checkBarQuality(body: unknown): BarQualityReport {
  const settings: Settings = Array.isArray(body) ? {} : (body as Settings)
  const zone = zoneOf(settings.timezone)
  return reportOn(readRequest(body, zone ?? UTC), settings, zone)
}

/** Checks the bars of a file in a request body. Throws as `checkBarQuality` does. */
export async function checkBarFile(body: unknown): Promise<BarQualityReport> {
  const settings = body as Settings
  const other = (['bars', 'columns', 'rows'] as const).find((name) => settings[name] !== undefined)
  if (other) throw invalid(['body', other], `Is beside a file. Send either bars or a file.`, 'file_and_bars')
  const zone = zoneOf(settings.timezone)
  const { buffer, byteOffset, byteLength } = fileIn(body)!.bytes
  return reportOn(await readBarFile(Buffer.from(buffer, byteOffset, byteLength), zone), settings, zone)
}

function reportOn({ bars, isWall, ...read }: ReadBars, settings: Settings, zone: Zone | null): BarQualityReport {
  const options: CheckOptions = {
    interval: settings.interval === undefined ? null : parseInterval(settings.interval),
    session: settings.session ?? 'auto',
    zone,
    allowNegative: settings.allow_negative ?? false,
  }
  const notes = isWall ? [...read.reading.notes, zoneNote(settings.timezone ?? null)] : read.reading.notes
  const reading = { ...read.reading, notes }
  const checked = checkBars(bars, options)
  const report = qualityReport(bars, checked, settings.symbol ?? null)
  return { ...report, reading, ...(settings.repair ? { repaired: repairBars(bars, checked, options) } : {}) }
}

function zoneOf(name: string | undefined): Zone | null {
  if (name === undefined) return null
  const zone = createZone(name)
  if (zone) return zone
  const msg = `${JSON.stringify(name)} is not a time zone. Write an IANA name such as America/New_York.`
  throw new InvalidInput(msg, ['body', 'timezone'])
}
