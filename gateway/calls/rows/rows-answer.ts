/** Turns an answer in JSON into one of its rows alone, in the format that the caller asked for. */
import { valueOf } from '../answers.ts'
import type { Answer } from '../request-and-answer.ts'
import { AnswerBody } from '../../plugin/answer-body.ts'
import type { OperationId } from '../../plugin/catalog.ts'
import { isObject } from '../../validation/json.ts'
import { ROW_MEDIA, type RowFormat } from './asked-format.ts'
import { rowsOf, type Table, WHOLE_ANSWER } from '../../catalog/table.ts'
import { writeRows } from './write-rows.ts'

/** Proxies refuse headers that are much longer. */
const MAX_FIELDS_CHARACTERS = 4_000

/**
 * Returns the answer with its rows as body. What it says beside them is in the header X-ANSWER-FIELDS, as base64 of JSON:
 * without its lists and objects if it would be too long. A next page is in Link, with the relation `next` (RFC 8288). An
 * answer other than 200 stays as it is.
 * @param url where the call went, without a cursor of the next page
 */
export async function rowsAnswer(
  answer: Answer,
  table: Table,
  format: RowFormat,
  { id, url }: { readonly id: OperationId; readonly url: string },
): Promise<Answer> {
  if (answer.status !== 200 || answer.events || answer.stream) return answer
  const value = valueOf(answer)
  const beside = besideRows(value, table)
  const pieces = await writeRows(format, table, rowsOf(value, table), beside)
  const { etag: _, ...headers } = answer.headers
  const cursor = table.hasCursor ? beside['next_cursor'] : undefined
  return {
    status: answer.status,
    headers: {
      ...headers,
      'content-type': format === 'csv' ? `${ROW_MEDIA.csv}; charset=utf-8; header=present` : ROW_MEDIA[format],
      'content-disposition': `attachment; filename="${id}.${format}"`,
      'x-answer-fields': headerOf(beside),
      ...(typeof cursor === 'string' ? { link: `<${nextPage(url, cursor)}>; rel="next"` } : {}),
    },
    body: new AnswerBody(pieces),
  }
}

type Fields = Readonly<Record<string, unknown>>

function besideRows(value: unknown, { rows }: Table): Fields {
  if (!isObject(value) || rows === WHOLE_ANSWER) return {}
  const { [rows]: _, ...beside } = value
  return beside
}

function headerOf(beside: Fields): string {
  const whole = encoded(beside)
  if (whole.length <= MAX_FIELDS_CHARACTERS) return whole
  const plain = encoded(Object.fromEntries(Object.entries(beside).filter(([, value]) => typeof value !== 'object')))
  return plain.length <= MAX_FIELDS_CHARACTERS ? plain : encoded({})
}

const encoded = (fields: Fields): string => Buffer.from(JSON.stringify(fields)).toString('base64')

function nextPage(url: string, cursor: string): string {
  const next = new URL(url)
  next.searchParams.set('cursor', cursor)
  return next.href
}
