/** `npm run pause`: stops the sale of a product or an operation, or lists what is paused. */
import { withBuiltIn, withBuiltInSchemas } from '../gateway/catalog/built-in.ts'
import { nearest } from '../gateway/catalog/names-and-references.ts'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { readDocuments } from '../gateway/catalog/documents.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { readStorageConfig } from '../gateway/config/config.ts'
import { withCommands } from '../gateway/config/project-root.ts'
import { createLog } from '../gateway/observe/log.ts'
import { createPausedSales } from '../gateway/products/paused-sales.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { readFlags } from './flags.ts'

const USAGE = withCommands(`npm run pause -- NAME [--reason TEXT]
npm run pause

Stops the sale of a product or an operation, by its id, in every gateway on this database, until npm run resume. Callers get
503 with the reason and are not charged; bought answers are still given again. Without NAME it lists what is paused.`)

const { values, positionals } = readFlags(USAGE, {
  options: { reason: { type: 'string', default: '' } },
  allowPositionals: true,
})

async function run([name, ...more]: readonly string[]): Promise<number> {
  if (more.length > 0) return refuse(`pause takes one name. Write the reason in quotes after --reason.\n\n${USAGE}`)
  if (!/^[^\p{C}]{0,200}$/u.test(values.reason)) return refuse('Write a reason of one line, at most 200 characters.')
  const config = readStorageConfig()
  const db = openDatabase(existingDatabase(config, 'products.sqlite'))
  try {
    const paused = createPausedSales(db, createLog('silent'), () => new Date())
    if (name === undefined) {
      const list = await paused.list()
      const lines = list.map(({ name: each, since, reason }) =>
        `${each}  since ${since.toISOString()}  ${reason}`.trimEnd(),
      )
      process.stdout.write(`${lines.length === 0 ? 'Nothing is paused.' : lines.join('\n')}\n`)
      return 0
    }
    const { documents } = await readDocuments(config.catalogDir)
    const { schemas } = await readSchemas(config.schemaDir)
    const { catalog } = createCatalog(withBuiltIn(documents), withBuiltInSchemas(schemas))
    const names = new Map<string, unknown>([
      ...catalog.operations,
      ...catalog.products.map((product) => [product.id, product] as const),
    ])
    if (!names.has(name)) return refuse(`No product and no operation is called ${name}. ${nearest(name, names)}`)
    await paused.pause(name, values.reason)
    process.stdout.write(withCommands(`${name} is paused. To sell it again: npm run resume -- ${name}\n`))
    return 0
  } finally {
    await db.destroy()
  }
}

function refuse(problem: string): number {
  process.stderr.write(`${problem}\n`)
  return 1
}

try {
  process.exitCode = await run(positionals)
} catch (error) {
  reportError(error)
}
