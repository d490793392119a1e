/** The Federal Register: papers on public inspection, and published documents. */
import { oneLine } from '../ingest/text.ts'
import { FeedError, type Item, type Precision } from '../item.ts'
import { jsonValue, moment } from './body.ts'

type Row = Readonly<Record<string, unknown>>

/** Documents of the President among those on public inspection. Others of the same list are not ours. */
export function parseInspection(body: Buffer): Item[] {
  return rowsOf(body)
    .filter((row) => row['type'] === 'Presidential Document' || isPresidential(row))
    .map((row) => {
      const filed = textOf(row, 'filed_at')
      // A paper without a time of filing is known by the day it will be published.
      const precision: Precision = filed === '' ? 'day' : 's'
      return documentOf(
        row,
        moment(filed || textOf(row, 'publication_date'), textOf(row, 'document_number')),
        precision,
        'pi',
      )
    })
}

/** Published presidential documents. A search without a match has no list at all. */
export function parseDocuments(body: Buffer): Item[] {
  return rowsOf(body).map((row) =>
    documentOf(row, moment(textOf(row, 'publication_date'), textOf(row, 'document_number')), 'day', 'docs'),
  )
}

function rowsOf(body: Buffer): Row[] {
  const value = jsonValue(body) as { results?: unknown; orders?: unknown; count?: unknown }
  const rows = value?.results ?? value?.orders
  if (Array.isArray(rows)) return rows as Row[]
  if (value?.count === 0) return []
  throw new FeedError('wrong_shape', 'The body has neither results nor a count of 0.')
}

function isPresidential(row: Row): boolean {
  const agencies = Array.isArray(row['agencies']) ? (row['agencies'] as Row[]) : []
  return agencies.some(({ slug }) => slug === 'executive-office-of-the-president')
}

function textOf(row: Row, name: string): string {
  const value = row[name]
  return typeof value === 'string' ? value.trim() : ''
}

function documentOf(row: Row, published: number, precision: Precision, form: 'pi' | 'docs'): Item {
  const number = textOf(row, 'document_number')
  if (number === '') throw new FeedError('wrong_shape', 'A document has no number.')
  const signed = textOf(row, 'signing_date')
  const order = textOf(row, 'executive_order_number')
  const facts = [
    textOf(row, 'abstract'),
    order ? `Executive Order ${order}.` : '',
    signed ? `Signed ${signed}.` : '',
    textOf(row, 'citation'),
  ]
  return {
    key: number,
    kind: form === 'pi' ? 'fr.public_inspection' : 'fr.published',
    title: oneLine(textOf(row, 'title')) || null,
    text: facts.filter(Boolean).join(' '),
    lang: 'en',
    url: textOf(row, 'html_url'),
    media: textOf(row, 'pdf_url') ? [{ type: 'other', url: textOf(row, 'pdf_url') }] : [],
    occurredAt: signed ? moment(signed, number) : null,
    publishedAt: published,
    precision,
    post: null,
    signedOn: signed || null,
    counts: null,
  }
}
