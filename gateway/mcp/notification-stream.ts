/**
 * The stream of notifications to one MCP client, as the SDK serves it. It is loaded when a client first opens one, since
 * the SDK's transport brings a web framework and the fetch of Node.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { InitializeResult } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'

/** The SDK's servers would each create one, though notifications are never validated. */
const VALIDATOR = new AjvJsonSchemaValidator()

/** One open stream. */
export interface NotificationStream {
  /** Tells the client that the list of tools has changed. */
  sendToolListChanged(): Promise<void>
  close(): Promise<void>
  /** Answers the request that opens the stream. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>
}

/** Creates a stream of a server with this name and these capabilities. */
export async function createNotificationStream(
  info: InitializeResult['serverInfo'],
  capabilities: InitializeResult['capabilities'],
): Promise<NotificationStream> {
  const server = new Server(info, { capabilities, jsonSchemaValidator: VALIDATOR })
  const transport = new StreamableHTTPServerTransport()
  await server.connect(transport)
  return {
    sendToolListChanged: () => server.sendToolListChanged(),
    close: () => server.close(),
    answer: (request, response) => transport.handleRequest(request, response),
  }
}
