import type { Poll, VenueName } from './rate.ts'

/** What is known of a venue at a moment. */
export interface VenueState {
  readonly venue: VenueName
  /** False where the operator switched it off. */
  readonly enabled: boolean
  /** The last answer, and when it was known; epoch seconds. */
  readonly poll: Poll | null
  readonly fetched: number | null
  /** Why the last attempt failed; null where it did not. */
  readonly error: string | null
  /** Replay: what was added to the recorded times. */
  readonly shiftSeconds?: number
}

/** Where the rates come from: sample, replay and online look the same from here. */
export interface Source {
  /** All venues as they were known at `asOf`, epoch seconds. */
  at(asOf: number): Promise<readonly VenueState[]>
}
