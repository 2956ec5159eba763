"""Loads the media of a request: fetches, checks and decodes the pictures, videos and PDFs of its
content parts.

Rules
1. Only hosts and folders that the options name are accessed. A host name is resolved once, each
   address is checked, and the connection goes to a checked address.
2. A picture's width and height are read from its header and checked before any pixel is decoded.
   The memory for decoding is limited for all requests together.
3. The bytes decide about a picture's format. A MIME type, a file's ending and a server's
   Content-Type are ignored.
4. Formats that Pillow does not read (containers of videos, PDFs) are read by limited processes,
   which get only the bytes.
5. Every fault of a picture or its address is an InvalidRequest that names the content part.
"""
