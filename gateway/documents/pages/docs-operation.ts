/** Prepares one operation of the OpenAPI document for its documentation page. */
import { curl, python, toolCall, typescript } from '../../../views/assets/snippets.js'
import type { Recipients } from '../../config/pay-to.ts'
import { toolName } from '../../catalog/product-drafts.ts'
import type { Catalog, Operation } from '../../plugin/plugin.ts'
import { MCP_PATHS, recipientsFor } from '../how-to-pay.ts'
import { isSoldAsJson } from '../listed-operations.ts'
import { exampleRequest } from './example-request.ts'
import { errorsOf } from './operation-errors.ts'
import { formOf, type OperationForm } from './operation-form.ts'
import { type Field, fieldOf, fieldsOf } from './schema-fields.ts'
import type { Content, OpenApiOperation, Schema } from './openapi-types.ts'

export interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: OpenApiOperation
}

export interface DocsContext {
  readonly schemas: Readonly<Record<string, Schema>>
  readonly catalog: Catalog
  readonly baseUrl: string
  readonly recipients: Recipients
}

export type Article = ReturnType<typeof articleOf>

/** Returns the description, the form, the request as code, the response and the errors of an operation. */
export function articleOf({ path, method, operation }: Entry, context: DocsContext) {
  const { schemas, catalog } = context
  const { operationId: id, summary, description, parameters = [], requestBody, responses } = operation
  const source = catalog.operations.get(id)
  const form = formOf(operation, schemas)
  const body = requestBody?.required ? bodyOf(requestBody.content, schemas) : null
  return {
    id,
    path,
    method,
    summary,
    description,
    price: source?.price ?? null,
    /** How long the access lasts that the operation sells; null if it sells one answer. */
    planSeconds: source?.plan?.durationSeconds ?? null,
    parameters: parameters.map(({ name, required, schema }) => fieldOf(name, schema, required, schemas)),
    body,
    form,
    /** Fields inside the JSON of a control. */
    nested: body?.fields.filter(({ name }) => /[.[]/.test(name)) ?? [],
    answer: answerOf(responses['200']?.content ?? {}, schemas),
    code: source ? codeOf(source, form, context) : null,
    errors: source ? errorsOf(source, catalog) : [],
  }
}

function bodyOf(content: Content, schemas: DocsContext['schemas']) {
  const [main] = Object.values(content)
  return { media: Object.keys(content).join(' or '), fields: main ? fieldsOf(main.schema, schemas) : [] }
}

function answerOf(content: Content, schemas: DocsContext['schemas']) {
  const [[media, main] = ['', undefined]] = Object.entries(content)
  const fields: readonly Field[] = main ? fieldsOf(main.schema, schemas) : []
  return { media, fields, example: main?.example === undefined ? null : JSON.stringify(main.example, null, 2) }
}

/** Returns the example request in each language, and the terms by which the page writes another one. */
function codeOf(operation: Operation, form: OperationForm, { catalog, baseUrl, recipients }: DocsContext) {
  const { price, priceText, example, body, bodyMedia } = operation
  const networks = price === null ? [] : recipientsFor(operation, recipients).map(({ network }) => network.caip2)
  const terms = { baseUrl, networks, price: priceText, tool: toolOf(operation, form, catalog) }
  const request = exampleRequest(operation, catalog.schemas, baseUrl)
  const { params, query, body: sent } = example?.request ?? {}
  const isWhole = form.controls.some(({ isWhole }) => isWhole)
  const whole = body !== null && bodyMedia.length > 0 && isWhole ? { body: sent } : (sent as object | undefined)
  const isPriced = price !== null
  return {
    terms,
    texts: [
      {
        language: 'curl',
        text: curl(request),
        note: isPriced ? 'Gets the price. To pay, use one of the programs.' : '',
      },
      {
        language: 'TypeScript',
        text: typescript(request, terms),
        note: isPriced ? 'Pays with the key in BUYER_KEY.' : '',
      },
      {
        language: 'Python',
        text: python(request),
        note: isPriced ? 'Gets the price, with the standard library alone.' : '',
      },
      ...(terms.tool
        ? [
            {
              language: 'MCP',
              text: toolCall(terms.tool.name, { ...params, ...query, ...whole }),
              note: `To ${baseUrl}${terms.tool.path}.${isPriced ? ' The answer is the price. Repeat it with payment_signature.' : ''}`,
            },
          ]
        : []),
    ],
  }
}

/** Returns the MCP tool of an operation, or null if it has none. */
function toolOf(operation: Operation, { controls, more }: OperationForm, catalog: Catalog) {
  const { id, tool } = operation
  if (tool !== null) return { name: tool, path: MCP_PATHS.named }
  const names = [...controls, ...more].map(({ name }) => name)
  const isClear = new Set(names).size === names.length
  return isClear && isSoldAsJson(operation, catalog) ? { name: toolName(id), path: MCP_PATHS.all } : null
}
