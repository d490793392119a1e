import type { BarQualityReport } from '../../schemas/types.d.ts'
import checkBarQuality from './bar-quality.ts'

/** Checks the bars of a call in a worker thread. Throws what `checkBarQuality` throws. */
export default function checkInThread({ body }: { readonly body: unknown }): BarQualityReport {
  return checkBarQuality(body)
}
