/**
 * The columns of the journal, once for both databases: the tables that it creates and the statements that write to them
 * take names and types from here.
 */
import { ENDINGS, MOVES } from './payment-states.ts'

type Engine = 'sqlite' | 'postgres'

/** Each type in a table of each database. SQLite keeps amounts as text. */
const TYPES = {
  text: { sqlite: 'TEXT', postgres: 'text' },
  integer: { sqlite: 'INTEGER', postgres: 'integer' },
  bigint: { sqlite: 'INTEGER', postgres: 'bigint' },
  numeric: { sqlite: 'TEXT', postgres: 'numeric(78, 0)' },
  bytea: { sqlite: 'BLOB', postgres: 'bytea' },
} as const
type Type = keyof typeof TYPES
/** A type, and what the column promises. */
type Definition = Type | `${Type} ${string}`
type Definitions = Readonly<Record<string, Definition>>

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(', ')

/** Each state with each cause that a move gives it. */
const CAUSED = Object.values(MOVES)
  .flatMap((move) => ('causes' in move ? [`(state = '${move.to}' AND cause IN (${quoted(move.causes)}))`] : []))
  .join(' OR ')

/** The columns of `payments` that the first release created. */
const FIRST = {
  key: 'text NOT NULL UNIQUE',
  state: `text NOT NULL CHECK (state IN ('reserved', 'answered', 'submitted', 'settled', 'released', 'owed'))`,
  attempt: 'integer NOT NULL CHECK (attempt > 0)',
  fingerprint: 'text NOT NULL',
  operation: 'text NOT NULL',
  route: 'text NOT NULL',
  network: 'text NOT NULL',
  asset: 'text NOT NULL',
  payer: 'text NOT NULL',
  pay_to: 'text NOT NULL',
  amount: 'numeric NOT NULL',
  nonce: 'text NOT NULL',
  valid_after: 'numeric NOT NULL',
  valid_before: 'numeric NOT NULL',
  signature: 'text NOT NULL',
  version: 'integer NOT NULL',
  price_version: 'text NOT NULL',
  call_id: 'text NOT NULL',
  owner: 'text NOT NULL',
  intent: 'text',
  transaction_hash: 'text',
  reason: 'text',
  detail: 'text',
  created_at: 'bigint NOT NULL',
  updated_at: 'bigint NOT NULL',
  settled_at: 'bigint',
  repaid_at: 'bigint',
  answer_status: 'integer',
  answer_headers: 'text',
  answer_body: 'bytea',
} as const satisfies Definitions

/** The columns that later releases added. */
const ADDED = {
  identifier: 'text',
  place: 'text',
  delivered_at: 'bigint',
  look_at: 'bigint',
  payer_code: 'text',
  pays_gas: 'integer',
  reverted_at: 'bigint',
  burnt: 'text',
  refetches: 'integer',
  excess_gas: 'bigint',
  cause: `text CHECK (cause IS NULL OR ${CAUSED})`,
  ending: `text CHECK (ending IN (${quoted(ENDINGS)}))`,
} as const satisfies Definitions

/** Values that are written beside columns: `detail` is `note` by now. */
const WRITTEN = {
  note: 'text',
  at: 'bigint',
  allowed: 'text',
  owned: 'text',
  drops_answer: 'integer',
  body_start: 'integer',
  body_length: 'integer',
} as const satisfies Definitions

const EVENTS = {
  payment: 'bigint NOT NULL REFERENCES payments (id)',
  attempt: 'integer NOT NULL',
  state: 'text NOT NULL',
  at: 'bigint NOT NULL',
  detail: 'text',
} as const satisfies Definitions

/** The cause of an event may also be how a debt ended. */
const EVENT_CAUSE: Definition = `text CHECK (cause IS NULL OR ${CAUSED} OR (state IN ('owed', 'reversed') AND cause IN (${quoted(ENDINGS)})))`

const typeOf = (definition: Definition): Type => definition.split(' ', 1)[0] as Type

function defined(engine: Engine, name: string, definition: Definition): string {
  const type = typeOf(definition)
  return `${name} ${TYPES[type][engine]}${definition.slice(type.length)}`
}

function createTable(engine: Engine, table: string, columns: Definitions): string {
  const [id, options] =
    engine === 'sqlite'
      ? ['id INTEGER PRIMARY KEY', ' STRICT']
      : ['id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', '']
  const all = [id, ...Object.entries(columns).map(([name, definition]) => defined(engine, name, definition))]
  return `CREATE TABLE ${table} (\n  ${all.join(',\n  ')}\n)${options};`
}

/** Creates the tables of payments and events as the first release did. */
export const createTables = (engine: Engine): string =>
  `${createTable(engine, 'payments', FIRST)}\n${createTable(engine, 'payment_events', EVENTS)}`

/** Adds columns of later releases to `payments`. */
export const addColumns = (engine: Engine, ...names: readonly (keyof typeof ADDED)[]): string =>
  names.map((name) => `ALTER TABLE payments ADD COLUMN ${defined(engine, name, ADDED[name])};`).join('\n')

/** Adds the cause to `payment_events`. */
export const addEventCause = (engine: Engine): string =>
  `ALTER TABLE payment_events ADD COLUMN ${defined(engine, 'cause', EVENT_CAUSE)};`

const ALL = { ...FIRST, ...ADDED, ...WRITTEN }
export type Column = keyof typeof ALL

/** Columns with their types, as PostgreSQL wants them of a table that is read from JSON. */
export const typed = (names: readonly Column[]): string =>
  names.map((name) => `${name} ${typeOf(ALL[name])}`).join(', ')

/** The columns that a reservation writes beside state, attempt and times. A takeover replaces all of them. */
export const RESERVED_COLUMNS = [
  'fingerprint',
  'operation',
  'route',
  'network',
  'asset',
  'payer',
  'pay_to',
  'amount',
  'nonce',
  'valid_after',
  'valid_before',
  'signature',
  'version',
  'price_version',
  'call_id',
  'identifier',
  'place',
  'payer_code',
  'pays_gas',
  'owner',
  'note',
] as const satisfies readonly Column[]

/** The values of a move: which payment may make it, and what it writes. */
export const MOVED_COLUMNS = [
  'key',
  'attempt',
  'state',
  'allowed',
  'owned',
  'at',
  'owner',
  'note',
  'cause',
  'intent',
  'transaction_hash',
  'reason',
  'reverted_at',
  'burnt',
  'drops_answer',
  'excess_gas',
  'answer_status',
  'answer_headers',
  'body_start',
  'body_length',
] as const satisfies readonly Column[]
