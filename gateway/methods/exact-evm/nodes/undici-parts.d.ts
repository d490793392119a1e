/** The types of two modules of undici, which declares those of the whole package alone. */
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici'
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions & { readonly origin: string },
  ): Promise<Dispatcher.ResponseData>
}

declare module 'undici/lib/global.js' {
  export { getGlobalDispatcher } from 'undici'
}
