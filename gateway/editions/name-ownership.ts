/** Who has which name in an edition, so that the next one takes no name away from its owner. */
import type { Catalog } from '../plugin/catalog.ts'
import type { Held } from '../catalog/names.ts'
import { parseRoute } from '../catalog/route.ts'

/** The names of a catalog by the file of the document that has them. */
export function heldBy({ products }: Catalog): Held {
  const files = new Map<string, string>()
  for (const { id, file, operations } of products) {
    files.set(`product ${id}`, file)
    for (const operation of operations) {
      files.set(`operation ${operation.id}`, file)
      const route = parseRoute(operation.route)
      if (route) files.set(`route ${route.shape}`, file)
      if (operation.tool !== null) files.set(`tool ${operation.tool}`, file)
    }
  }
  return (kind, name) => files.get(`${kind} ${name}`)
}
