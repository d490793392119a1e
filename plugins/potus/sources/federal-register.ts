/** The Federal Register: documents on public inspection, and published documents. */
import { oneLine } from './html-text.ts'
import { FeedError, type Item, type Precision } from './source.ts'
import { dayOf, jsonValue, objectsOf, type JsonRow, timeOf } from './feed-body.ts'

/** Presidential documents on public inspection. Other documents of the list are skipped. */
export function parseInspection(body: Buffer): (Item | null)[] {
  return rowsOf(body)
    .filter(isPresidential)
    .map((row) => {
      const filed = timeOf(textOf(row, 'filed_at'))
      // A document without a filing time is dated by the day on which it will be published.
      if (filed === null) return documentOf(row, timeOf(textOf(row, 'publication_date')), 'day', 'fr.public_inspection')
      const item = documentOf(row, filed, 's', 'fr.public_inspection')
      // The list does not say when a document was signed, which is a day or two before it was filed.
      return item && { ...item, signedOn: item.signedOn ?? new Date(filed).toISOString().slice(0, 10) }
    })
}

/** Published presidential documents. An empty search result has no list at all. */
export function parseDocuments(body: Buffer): (Item | null)[] {
  return rowsOf(body)
    .filter((row) => textOf(row, 'type') === '' || isPresidential(row))
    .map((row) => documentOf(row, timeOf(textOf(row, 'publication_date')), 'day', 'fr.published'))
}

function rowsOf(body: Buffer): JsonRow[] {
  const value = jsonValue(body) as { results?: unknown; orders?: unknown; count?: unknown } | null
  const rows = Array.isArray(value) ? value : (value?.results ?? value?.orders)
  if (Array.isArray(rows)) return objectsOf(rows)
  if (value?.count === 0) return []
  throw new FeedError('wrong_shape', 'The body has neither results nor a count of 0.')
}

/** Decides by the type, "Presidential Document" or "PRESDOCU", and without a type by the agency. */
function isPresidential(row: JsonRow): boolean {
  const type = textOf(row, 'type')
  if (type !== '') return /^presid|^presdocu$/i.test(type)
  const agencies = Array.isArray(row['agencies']) ? objectsOf(row['agencies']) : []
  return agencies.some(({ slug }) => slug === 'executive-office-of-the-president')
}

function textOf(row: JsonRow, name: string): string {
  const value = row[name]
  return typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
}

/** "(Memorandum of August 7, 2020)" at the end of a title. */
const SIGNED = /\([^()]* of ([A-Z][a-z]+ \d{1,2}, \d{4})\)\s*$/

/** Null if the document has no number or no date. */
function documentOf(row: JsonRow, published: number | null, precision: Precision, kind: Item['kind']): Item | null {
  const number = textOf(row, 'document_number')
  if (number === '' || published === null) return null
  const [order, proclamation] = [textOf(row, 'executive_order_number'), textOf(row, 'proclamation_number')]
  const signed = dayOf(textOf(row, 'signing_date') || (SIGNED.exec(textOf(row, 'title'))?.[1] ?? ''))
  const facts = [
    textOf(row, 'abstract'),
    order ? `Executive Order ${order}.` : '',
    proclamation ? `Proclamation ${proclamation}.` : '',
    signed ? `Signed ${signed}.` : '',
    textOf(row, 'citation'),
  ]
  // Some documents have only the two halves of their title.
  const title = textOf(row, 'title') || [textOf(row, 'toc_subject'), textOf(row, 'toc_doc')].filter(Boolean).join(' ')
  return {
    key: number,
    kind,
    title: oneLine(title) || null,
    text: facts.filter(Boolean).join(' '),
    lang: 'en',
    url: textOf(row, 'html_url'),
    media: textOf(row, 'pdf_url') ? [{ type: 'other', url: textOf(row, 'pdf_url') }] : [],
    occurredAt: signed === null ? null : timeOf(signed),
    publishedAt: published,
    precision,
    post: number,
    signedOn: signed,
    counts: null,
  }
}
