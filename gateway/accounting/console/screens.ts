/** The shapes in which accounting hands its data to the operator console: screens, downloads and actions. */
import type { Edition } from '../../editions/edition.ts'
import { InvalidInput } from '../../errors.ts'

export interface Screen {
  /** Name of the view below views/operator. */
  readonly view: string
  /** Label in the console's menu. */
  readonly label: string
  data(edition: Edition, query: URLSearchParams): Promise<object>
}

/** A file that is written while it is sent. */
export interface Download {
  readonly type: string
  readonly name: string
  readonly text: AsyncIterable<string>
}

/** A change that an operator makes. `fields` come from the form or the JSON body. `screen` shows the result, if set. */
export interface Action {
  run(fields: Fields, edition: Edition): Promise<object>
  /** Where a browser goes afterwards. Without it the result is shown in place. */
  readonly back?: string
  readonly screen?: Screen
}

export type Fields = Readonly<Record<string, unknown>>

/** Reads a text field of an action. Throws InvalidInput if it is missing or does not match `pattern`. */
export function textField(fields: Fields, name: string, pattern: RegExp): string {
  const value = fields[name]
  if (typeof value !== 'string' || !pattern.test(value))
    throw new InvalidInput('is missing or malformed', ['body', name])
  return value
}
