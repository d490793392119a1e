import type { EditionOptions } from '../../../gateway/products/build.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import { log } from '../../fixtures/plugins/gold/index.ts'
import { openCatalog, openEditionBuilder, type TestCatalog } from '../../support/catalog.ts'

type Documents = Readonly<Record<string, unknown>>
type EditionBuilder = Awaited<ReturnType<typeof openEditionBuilder>>

/** Opens a catalog for each test, and stops its editions and removes its folder afterwards. Call it inside a `describe`. */
export function useEditions() {
  let catalog: TestCatalog
  let builder: EditionBuilder
  const editions: Edition[] = []

  afterEach(async () => {
    await Promise.all(editions.splice(0).map((edition) => edition.stop()))
    await builder.close()
    catalog.close()
  })

  async function build(previous?: Edition, options: Partial<EditionOptions> = {}) {
    const built = await builder.build({ ...(previous ? { previous } : {}), ...options })
    editions.push(built.edition)
    return built
  }

  return {
    build,
    async open(documents: Documents, secrets: Readonly<Record<string, string>> = {}, schemas: Documents = {}) {
      catalog = openCatalog(documents)
      for (const [file, schema] of Object.entries(schemas)) catalog.writeSchema(file, schema)
      builder = await openEditionBuilder(catalog, secrets)
      log.length = 0
      return build()
    },
    write: (file: string, content: unknown) => catalog.write(file, content),
    writeSchema: (file: string, content: unknown) => catalog.writeSchema(file, content),
    remove: (file: string) => catalog.remove(file),
  }
}

export const idsOf = ({ catalog: { products } }: Edition): string[] => products.map(({ id }) => id)
