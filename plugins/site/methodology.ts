/** How the numbers are made. Each product tells it itself, through an operation that this page may ask. */
import type { Call, Operation, Product } from 'tollgate/plugin'
import type { Chart } from '../lib/charts.ts'
import { anchorOf, askIfThere, byPrice } from './asking.ts'

interface Table {
  readonly caption: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number | null)[])[]
}

/** common.json#/$defs/Method */
export interface Method {
  readonly model: string
  readonly paragraphs: readonly string[]
  readonly formulas?: readonly { readonly name: string; readonly formula: string; readonly source?: string }[]
  readonly tables?: readonly Table[]
  readonly charts?: readonly Chart[]
  readonly limits?: readonly string[]
  readonly sources?: readonly string[]
}

/** Operations named so tell a product's method: getRegimeMethod, for one. A line in `uses` brings one to the page. */
const TELLS_METHOD = /Method$/

export async function methodology(call: Call) {
  const { catalog } = call
  const page = catalog.products.find(({ id }) => id === call.operation.product)
  const asked = (page?.uses ?? []).filter((id) => TELLS_METHOD.test(id))
  const sold = catalog.products.filter(({ operations }) => operations.some(isDescribed)).sort(byPriceOfProduct)
  const told = sold.flatMap((product) => {
    const id = asked.find((id) => catalog.operations.get(id)?.product === product.id)
    return id === undefined ? [] : [{ product, id }]
  })
  const silent = sold.filter((product) => told.every((one) => one.product !== product))
  return {
    methods: await Promise.all(
      told.map(async ({ product, id }) => section(product, await askIfThere<Method>(call, id))),
    ),
    others: silent.map(({ id, title }) => ({ title, href: `/docs#${anchorOf(id)}` })),
  }
}

/** Sold, and with more to say of it than its summary. */
function isDescribed({ price, listed, retired, description }: Operation): boolean {
  return price !== null && listed && !retired && description !== ''
}

function byPriceOfProduct(one: Product, other: Product): number {
  return byPrice(one.operations, other.operations)
}

/** One product's part of the page. While it cannot tell its method, its operations describe themselves. */
function section({ id, title, summary, operations }: Product, told: Method | null) {
  return {
    id,
    title,
    summary,
    model: told?.model ?? null,
    paragraphs: told?.paragraphs ?? operations.filter(isDescribed).map(({ description }) => description),
    formulas: told?.formulas ?? [],
    tables: (told?.tables ?? []).map(written),
    charts: told?.charts ?? [],
    limits: told?.limits ?? [],
    sources: told?.sources ?? [],
    missing: told === null ? 'The measured figures cannot be shown at the moment.' : null,
  }
}

/** More decimals than any measurement here means. */
const MOST_DECIMALS = 6

/** A table as text. The numbers of a column have as many decimals as the one that needs most: 2.26 above 1.8 is 1.80. */
export function written({ caption, columns, rows }: Table) {
  const shaped = columns.map((name, index) => {
    const numbers = rows.map((row) => row[index]).filter((cell) => typeof cell === 'number')
    const decimals = Math.max(0, ...numbers.map(decimalsOf))
    const shape = { minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: 'min2' } as const
    return { name, isNumber: numbers.length > 0, numbers: new Intl.NumberFormat('en-US', shape) }
  })
  return {
    caption,
    columns: shaped.map(({ name, isNumber }) => ({ name, isNumber })),
    rows: rows.map((row) =>
      row.map((cell, index) => (typeof cell === 'number' ? shaped[index]?.numbers.format(cell) : (cell ?? '–'))),
    ),
  }
}

function decimalsOf(value: number): number {
  return Number(value.toFixed(MOST_DECIMALS)).toString().split('.')[1]?.length ?? 0
}
