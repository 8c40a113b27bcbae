/** The built site on 127.0.0.1, as a browser of a reader sees it; axe over file:// reports requests that do not exist. */

import { createServer } from "node:http";
import { readFile, readdir } from "node:fs/promises";
import { extname, join, normalize, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

/** Serve a folder on a free port; return its address, how many bytes an address takes when sent, and a way to stop. */
export async function serve(folder) {
  const sizes = new Map();
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    try {
      const body = await readFile(join(folder, path.endsWith("/") ? join(path, "index.html") : path));
      // What is compressed already is sent as it is.
      if (!sizes.has(path)) sizes.set(path, Math.min(body.length, gzipSync(body).length));
      response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sizeOf = (url) => sizes.get(normalize(decodeURIComponent(new URL(url).pathname))) ?? 0;
  return { address: `http://127.0.0.1:${server.address().port}`, sizeOf, stop: () => server.close() };
}

/** Return the path of every HTML page below a folder, in order. */
export async function pagesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html"))
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join("/"))
    .filter((path) => !path.startsWith("_static/"))
    .sort();
}
