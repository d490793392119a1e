import type { BarQualityReport } from '../../schemas/types.d.ts'
import checkBarQuality, { checkBarFile, fileIn } from './bar-quality.ts'

/** Checks the bars of a call in a worker thread. Throws what `checkBarQuality` throws. */
export default function checkInThread({
  body,
}: {
  readonly body: unknown
}): BarQualityReport | Promise<BarQualityReport> {
  return fileIn(body) ? checkBarFile(body) : checkBarQuality(body)
}
