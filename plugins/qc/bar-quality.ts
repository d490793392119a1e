import { InvalidInput } from 'tollgate/plugin'
import type { BarQualityReport, BarQualityRequest } from '../../schemas/types.d.ts'
import { readBars } from './bar-input.ts'
import { checkBars } from './check-bars.ts'
import { parseInterval } from './bar-interval.ts'
import { qualityReport } from './quality-report.ts'
import { createZone, UTC, type Zone } from './bar-times.ts'

type Settings = Partial<Exclude<BarQualityRequest, readonly unknown[]>>

/** Checks the bars of a request body and returns the report. Throws InvalidInput that names the field or row. */
export default function checkBarQuality(body: unknown): BarQualityReport {
  const settings: Settings = Array.isArray(body) ? {} : (body as Settings)
  const zone = zoneOf(settings.timezone)
  const bars = readBars(body, zone ?? UTC)
  const checked = checkBars(bars, {
    interval: settings.interval === undefined ? null : parseInterval(settings.interval),
    session: settings.session ?? 'auto',
    zone,
    allowNegative: settings.allow_negative ?? false,
  })
  return qualityReport(bars, checked, settings.symbol ?? null)
}

function zoneOf(name: string | undefined): Zone | null {
  if (name === undefined) return null
  const zone = createZone(name)
  if (zone) return zone
  const msg = `${JSON.stringify(name)} is not a time zone. Write an IANA name such as America/New_York.`
  throw new InvalidInput(msg, ['body', 'timezone'])
}
