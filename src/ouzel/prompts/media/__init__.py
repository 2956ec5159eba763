"""The pictures, videos and PDFs of a request: what its content parts name is fetched, checked and decoded.

Rules
1. Nothing is connected to and no file is read but what the options name. A host's name is resolved once, each of its
   addresses is checked, and the connection is to one of those.
2. A picture's width and height are read from its header and checked before a pixel of it is decoded. What memory
   decoding takes at a time is bounded for all requests together.
3. The bytes decide of what format a picture is. A MIME type, a file's ending and a server's Content-Type say nothing.
4. What Pillow does not read (containers of videos, PDFs) is read by limited processes, which get the bytes only.
5. Whatever is wrong with a picture, or with where it is, is an InvalidRequest that names the content part.
"""
