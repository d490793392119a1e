/** The operations that the service sells, with their validators, for targets that read what calls bring. */
import { withBuiltIn } from '../../../gateway/catalog/built-in.ts'
import { readDocuments } from '../../../gateway/catalog/documents.ts'
import { createValidators, type Validators } from '../../../gateway/catalog/operation-validators.ts'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { readSchemas } from '../../../gateway/catalog/schemas.ts'
import { PROJECT_ROOT } from '../../../gateway/config/project-root.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'

const { schemas } = await readSchemas(`${PROJECT_ROOT}/schemas`)
const { documents } = await readDocuments(`${PROJECT_ROOT}/catalog`)

export const { catalog: CATALOG } = createCatalog(withBuiltIn(documents), schemas)

const compile = createValidators(schemas)
const compiled = new Map<string, Validators>()

/** The operation of this id. Throws RangeError if nothing of that name is sold. */
export function operationOf(id: string): Operation {
  const operation = CATALOG.operations.get(id)
  if (!operation) throw new RangeError(`There is no operation ${id}.`)
  return operation
}

/** The validators of an operation, compiled once. */
export function validatorsOf(id: string): Validators {
  let validators = compiled.get(id)
  if (!validators) compiled.set(id, (validators = compile(operationOf(id))))
  return validators
}
