/** The page on how the numbers are computed. Each product describes its own method through an operation. */
import type { Call, Operation, Product } from 'tollgate/plugin'
import type { Claim, Method } from '../../schemas/types.d.ts'
import { anchorOf, askIfAvailable, byPrice } from './page-data.ts'

type Table = Required<Method>['tables'][number]

/** Operations that describe a method, such as getRegimeMethod. The page shows those that `uses` in site.json names. */
const METHOD_OPERATION = /Method$/

/** Returns all claims, one section for each sold product that describes its method, and the titles of the others. */
export async function methodology(call: Call) {
  const { catalog } = call
  const page = catalog.products.find(({ id }) => id === call.operation.product)
  const available = (page?.uses ?? []).filter((id) => METHOD_OPERATION.test(id))
  const sold = catalog.products.filter(({ operations }) => operations.some(isDescribed)).sort(byPriceOfProduct)
  const described = sold.flatMap((product) => {
    const id = available.find((id) => catalog.operations.get(id)?.product === product.id)
    return id === undefined ? [] : [{ product, id }]
  })
  const others = sold.filter((product) => described.every((one) => one.product !== product))
  const methods = await Promise.all(
    described.map(async ({ product, id }) => ({ product, method: await askIfAvailable<Method>(call, id) })),
  )
  return {
    claims: claimsOf(methods),
    methods: methods.map(({ product, method }) => section(product, method)),
    others: others.map(({ id, title }) => ({ title, href: `/docs#${anchorOf(id)}` })),
  }
}

/** The claims by product, and how many are met. */
function claimsOf(methods: readonly { readonly product: Product; readonly method: Method | null }[]) {
  const products = methods.flatMap(({ product: { id, title }, method }) =>
    method?.claims?.length ? [{ id, title, claims: method.claims.map(shownClaim) }] : [],
  )
  const all = products.flatMap(({ claims }) => claims)
  return { products, count: all.length, met: all.filter(({ met }) => met).length }
}

/** A claim with its window, in days. */
function shownClaim({ start, end, ...claim }: Claim) {
  const days = [start, end].flatMap((time) => (time === null ? [] : [time.slice(0, 10)]))
  return { ...claim, window: [...new Set(days)].join(' to ') }
}

/** True for a paid operation that has a description beside its summary. */
function isDescribed({ price, listed, retired, description }: Operation): boolean {
  return price !== null && listed && !retired && description !== ''
}

function byPriceOfProduct(one: Product, other: Product): number {
  return byPrice(one.operations, other.operations)
}

/** Returns the section of a product. If its method is unavailable, the descriptions of its operations replace it. */
function section({ id, title, summary, operations }: Product, method: Method | null) {
  return {
    id,
    title,
    summary,
    model: method?.model ?? null,
    paragraphs: method?.paragraphs ?? operations.filter(isDescribed).map(({ description }) => description),
    formulas: method?.formulas ?? [],
    tables: (method?.tables ?? []).map(formatTable),
    charts: method?.charts ?? [],
    limits: method?.limits ?? [],
    sources: method?.sources ?? [],
    missing: method === null ? 'The measured figures are currently unavailable.' : null,
  }
}

/** No measurement has more significant decimals. */
const MAX_DECIMALS = 6

/** Formats a table as text. All numbers of a column get the same decimals: 1.8 below 2.26 becomes 1.80. */
export function formatTable({ caption, columns, rows }: Table) {
  const shaped = columns.map((name, index) => {
    const numbers = rows.map((row) => row[index]).filter((cell) => typeof cell === 'number')
    const decimals = Math.max(0, ...numbers.map(decimalsOf))
    return { name, isNumber: numbers.length > 0, numbers: withDecimals(decimals) }
  })
  return {
    caption,
    columns: shaped.map(({ name, isNumber }) => ({ name, isNumber })),
    rows: rows.map((row) =>
      row.map((cell, index) => (typeof cell === 'number' ? shaped[index]?.numbers.format(cell) : (cell ?? '–'))),
    ),
  }
}

const formats = new Map<number, Intl.NumberFormat>()

/** Formats numbers with as many decimals. To create a format takes longer than to write a table with it. */
function withDecimals(decimals: number): Intl.NumberFormat {
  const shape = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  const format = formats.get(decimals) ?? new Intl.NumberFormat('en-US', shape)
  formats.set(decimals, format)
  return format
}

function decimalsOf(value: number): number {
  return Number(value.toFixed(MAX_DECIMALS)).toString().split('.')[1]?.length ?? 0
}
