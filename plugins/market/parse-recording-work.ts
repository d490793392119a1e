/** Parses a recorded file. It runs in a worker thread, because a year of minutes takes seconds. */
import { transfer } from 'tollgate/plugin'
import { type DroppedRow, parseRecording, type RecordingFormat } from './bar-recordings.ts'
import type { Columns } from './bars.ts'

export interface ParsedRecording {
  /** The bars of each symbol. */
  readonly parts: readonly (readonly [symbol: string, bars: Columns])[]
  /** How many rows were left out, by reason. */
  readonly dropped: Readonly<Partial<Record<DroppedRow, number>>>
}

interface RecordedBytes {
  readonly bytes: Uint8Array
  readonly format: RecordingFormat
}

export default function parseInThread({ bytes, format }: RecordedBytes): ParsedRecording {
  const dropped: Partial<Record<DroppedRow, number>> = {}
  const count = (reason: DroppedRow): void => void (dropped[reason] = (dropped[reason] ?? 0) + 1)
  const parts = [...parseRecording(new TextDecoder().decode(bytes), format, count)]
  return transfer(
    { parts, dropped },
    parts.flatMap(([, bars]) => buffersOf(bars)),
  )
}

function buffersOf({ time, open, high, low, close, volume, state }: Columns): ArrayBuffer[] {
  return [time, open, high, low, close, volume, state].map(({ buffer }) => buffer as ArrayBuffer)
}
