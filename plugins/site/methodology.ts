/** How the numbers are made. Each product tells it itself, through an operation that this page may ask. */
import type { Call, Catalog, Product } from '#gateway'
import { askIfThere } from './asking.ts'

/** common.json#/$defs/Method */
export interface Method {
  readonly model: string
  readonly paragraphs: readonly string[]
  readonly formulas?: readonly { readonly name: string; readonly formula: string; readonly source?: string }[]
  readonly tables?: readonly {
    readonly caption: string
    readonly columns: readonly string[]
    readonly rows: readonly (readonly (string | number | null)[])[]
  }[]
  readonly limits?: readonly string[]
  readonly sources?: readonly string[]
}

/** Operations named so tell a product's method: getRegimeMethod, for one. A line in `uses` brings one to the page. */
const TELLS_METHOD = /Method$/

export async function methodology(call: Call) {
  const { catalog } = call
  const page = catalog.products.find(({ id }) => id === call.operation.product)
  const asked = (page?.uses ?? []).filter((id) => TELLS_METHOD.test(id))
  const told = await Promise.all(
    asked.map(async (id) => section(productOf(catalog, id), await askIfThere<Method>(call, id))),
  )
  return { methods: told.flatMap((section) => section ?? []) }
}

function productOf(catalog: Catalog, operation: string): Product | undefined {
  const product = catalog.operations.get(operation)?.product
  return catalog.products.find(({ id }) => id === product)
}

function section(product: Product | undefined, method: Method | null) {
  if (product === undefined) return null
  const { id, title, summary } = product
  return {
    id,
    title,
    summary,
    model: method?.model ?? null,
    paragraphs: method?.paragraphs ?? [],
    formulas: method?.formulas ?? [],
    tables: method?.tables ?? [],
    limits: method?.limits ?? [],
    sources: method?.sources ?? [],
    missing: method === null ? 'The account of this method cannot be given at the moment.' : null,
  }
}
