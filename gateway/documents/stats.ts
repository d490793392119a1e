/** /v1/stats: the figures every product keeps of itself. */
import type { Edition } from '../editions/edition.ts'

/** All facts by product, and those of the leading product at the top. A product without facts is not named. */
export async function stats(edition: Edition, leading: string | null) {
  const facts = Object.entries(await edition.facts()).filter(([, fact]) => Object.keys(fact).length > 0)
  const products = Object.fromEntries(facts)
  const top = leading === null ? {} : (products[leading] ?? {})
  return { ...top, catalog_version: edition.catalog.version, products }
}
