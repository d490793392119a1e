/** One Express Router per edition: strict, case-sensitive, a parameter is exactly one segment. */
import express, { type Request, type RequestHandler, type Response, type Router } from 'express'
import type { Operation } from '../catalog/catalog.ts'
import type { BoundOperation, Edition } from '../editions/edition.ts'

export type OnOperation = (bound: BoundOperation, ...rest: Parameters<RequestHandler>) => void | Promise<void>

/** Takes what fits no operation, with the methods its path has; none where the path is unknown. */
export type Otherwise = (request: Request, response: Response, methods: readonly string[]) => void

const possible = (response: Response): readonly string[] => (response.locals['methods'] as string[] | undefined) ?? []

/** Builds the routes of an edition. Every request ends in one of the two. */
export function createRoutes(edition: Edition, onOperation: OnOperation, otherwise: Otherwise): Router {
  const router = express.Router({ strict: true, caseSensitive: true })
  const routed = [...edition.bound.values()].filter(({ operation }) => !operation.internal && operation.path !== '')
  routed.sort((a, b) => byPlainness(a.operation, b.operation))
  const methods = new Map<string, string[]>()
  for (const bound of routed) {
    const path = expressPath(bound.operation.path)
    const verb = bound.operation.method.toLowerCase() as 'get' | 'post' | 'put' | 'patch' | 'delete'
    router.route(path)[verb]((request, response, next) => onOperation(bound, request, response, next))
    const known = methods.get(path) ?? []
    known.push(...(verb === 'get' ? ['GET', 'HEAD'] : [bound.operation.method]))
    methods.set(path, known)
  }
  for (const [path, verbs] of methods)
    router.all(path, (_request, response, next) => {
      response.locals['methods'] = [...possible(response), ...verbs]
      next()
    })
  router.use((request, response) => otherwise(request, response, possible(response)))
  return router
}

/** A literal segment goes before a parameter: "/v1/x/gold" before "/v1/x/{name}". */
function byPlainness(a: Operation, b: Operation): number {
  const first = a.path.split('/')
  const second = b.path.split('/')
  for (const [index, segment] of first.entries()) {
    const difference = Number(segment.startsWith('{')) - Number(second[index]?.startsWith('{') ?? false)
    if (difference !== 0) return difference
  }
  return 0
}

/** "/v1/event/{selector}" is `/v1/event/:"selector"` to Express; signs that mean something to it are escaped. */
function expressPath(path: string): string {
  return path
    .split(/(\{[^}]+\})/)
    .map((piece) => (piece.startsWith('{') ? `:"${piece.slice(1, -1)}"` : piece.replace(/[{}()[\]+?!:*\\]/g, '\\$&')))
    .join('')
}
