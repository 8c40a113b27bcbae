// The versions beside this one, the newest first. tools/publish.py writes this file anew in each version's folder.
globalThis.siteVersions = [];
