/** What the fuzzer runs: a parser, what its inputs look like, and what must hold for each of them. */
import { ok } from 'node:assert/strict'
import { errorBody, ERRORS, InvalidInput, ServiceError } from '../../gateway/errors.ts'

/** A parser under test. */
export interface FuzzTarget {
  /** The name of its folder in test/fuzz/corpus. */
  readonly name: string
  /** Longer inputs are not tried: the gateway refuses them before the parser sees them, or reads them in a thread. */
  readonly maxBytes: number
  /** Valid inputs, and invalid ones that get far. */
  readonly seeds: readonly (string | Buffer)[]
  /** Words that mean something to the parser. */
  readonly words: readonly string[]
  /**
   * Reads one input, and asserts what must hold. Throws for a fault: an error that is no refusal, or a result that breaks
   * a promise of the parser.
   */
  readonly read: (input: Buffer) => unknown
}

/** The messages of refusals have at most so many characters, and lists of issues so many items. */
const MAX_MESSAGE = 100_000
const MAX_ITEMS = 300

/**
 * Runs a parser. Returns what it read, or null if it refused the input as the gateway refuses bad input: with a
 * ServiceError of status 4xx whose body can be sent. Throws anything else.
 */
export function acceptedBy<Value>(parse: () => Value): Value | null {
  try {
    return parse()
  } catch (error) {
    assertRefusal(error)
    return null
  }
}

/** `acceptedBy` for a parser that works in several turns. */
export async function acceptedLater<Value>(parse: () => Promise<Value>): Promise<Value | null> {
  try {
    return await parse()
  } catch (error) {
    assertRefusal(error)
    return null
  }
}

/** Throws the error unless it is a refusal of bad input that a caller can be sent. */
export function assertRefusal(error: unknown): asserts error is ServiceError {
  if (!(error instanceof ServiceError) || error.status < 400 || error.status >= 500) throw error
  ok(error.code in ERRORS, `the code ${error.code} is not in the table of errors`)
  ok(error.message !== '', `the refusal ${error.code} says nothing`)
  ok(error.message.length <= MAX_MESSAGE, `the refusal ${error.code} has ${error.message.length} characters`)
  if (error instanceof InvalidInput) {
    ok(error.detail.length > 0, 'the refusal lists no issue')
    ok(error.detail.length <= MAX_ITEMS, `the refusal lists ${error.detail.length} issues`)
  }
  JSON.parse(JSON.stringify(errorBody(error)))
}
